"""Alice with something of everything: what the database's functions have to do with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg

from app.runs.cancelling import cancel_runs
from app.runs.runs import RunRequest, create_run
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tests.integration.tenancy.locking import (
    ASKED,
    CLOSED,
    CONNECTION,
    ERASURE,
    KEY,
    OVERDUE,
    POOLS,
    SEALED,
    SEATED,
    WAITING,
    Scene,
    rows,
    statement_of,
)
from tests.support.tenancy import (
    ASSISTANT,
    MODEL,
    claim_runs,
    expire_leases,
    make_thread,
    make_worker,
    queue_run,
)

SITUATIONS = ("running", "lost", "asked to stop", "deleted")
LEAVING = "leaving"
"""In which little is done for the person any more, and what is done then at no other time."""


async def make_scene(
    situation: str,
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    alice: Principal,
) -> Scene:
    """Make what there is: her run is held, its worker is dead, it is to stop, or she leaves."""
    thread, other = [await make_thread(tenants, alice) for _ in range(2)]
    worker = await make_worker(dispatch)
    await create_run(
        tenants,
        alice,
        thread_id=thread,
        assistant_id=ASSISTANT,
        graph_id="agent",
        request=RunRequest(),
        idempotency=KEY,
    )
    (run,) = await claim_runs(dispatch, worker, 1, 10)
    await queue_run(tenants, alice, other)
    await claim_runs(dispatch, worker, 1, 10)
    await queue_run(tenants, alice, thread)
    await tenants.call(
        run,
        statement_of("tenant.write_checkpoints", tuple(range(23))),
        run.run_id,
        run.fence,
        *rows(thread, "c", "c"),
    )
    if situation == "lost":
        await expire_leases(superuser)
    if situation == "asked to stop":
        await cancel_runs(tenants, alice, run_ids=[run.run_id], action="rollback")
    if situation == "deleted":
        await expire_leases(superuser)
        await cancel_runs(tenants, alice, thread_id=thread)
        await superuser.execute(
            "UPDATE threads SET deleted_at = now() WHERE thread_id = $1", thread
        )
    for waiting in (WAITING, OVERDUE):
        await make_questions(superuser, alice, waiting, await make_thread(tenants, alice), worker)
    ids = await superuser.fetch("SELECT run_id FROM runs ORDER BY run_id")
    await make_calls(superuser, run)
    await make_connection(superuser, alice)
    if situation == LEAVING:
        await superuser.execute("UPDATE users SET state = 'erasing'")
        await superuser.execute(
            "INSERT INTO erasures (erasure_id, subject, requested_by, attempts)"
            " VALUES ($1, $2, 'person', 1)",
            *(ERASURE, alice.user_id),
        )
    return Scene(alice.user_id, thread, run, worker, [row[0] for row in ids])


async def make_calls(superuser: asyncpg.Connection, run: ClaimedRun) -> None:
    """A call of the run's that has a seat, and one that waits for one; limits, and a plan."""
    await superuser.execute("SELECT dispatch.declare_pools($1::text::jsonb)", POOLS)
    await superuser.execute(
        "INSERT INTO model_users (user_id, model, vtime) VALUES ($1, $2, 0)", run.user_id, MODEL
    )
    await superuser.executemany(
        """
        INSERT INTO model_calls (user_id, call_id, run_id, fence, worker_id, model, priority,
          asked_at, pool, seat, granted_at, taken_at)
        VALUES ($1, $2, $3, 1, gen_random_uuid(), $4, 0, now(), $5, $6, $7, $7)
        """,
        [
            (run.user_id, SEATED, run.run_id, MODEL, "one", 1, datetime.now(UTC)),
            (run.user_id, uuid4(), run.run_id, MODEL, None, None, None),
        ],
    )
    await superuser.execute("INSERT INTO plans (plan) VALUES ('default')")
    await superuser.execute("INSERT INTO user_limits (user_id) VALUES ($1)", run.user_id)


async def make_questions(
    superuser: asyncpg.Connection, person: Principal, run: UUID, thread: UUID, worker: UUID
) -> None:
    """A run that waits for its person, who has decided one thing before; one that is overdue."""
    await superuser.execute(
        """
        INSERT INTO runs (user_id, run_id, thread_id, assistant_id, graph_id, request, due_at,
          created_at, updated_at)
        VALUES ($1, $2, $3, $4, 'agent', '{}', now(), now(), now())
        """,
        *(person.user_id, run, thread, ASSISTANT),
    )
    for state, holder in (("running", worker), ("waiting", None)):
        await superuser.execute(
            """
            UPDATE runs SET state = $2::run_state, fence = fence + 1, worker_id = $3,
              claimed_at = now() WHERE run_id = $1
            """,
            *(run, state, holder),
        )
    decided, soon = datetime.now(UTC), datetime.now(UTC) + timedelta(days=1)
    asked = [(ASKED, "open", None, None, soon), (CLOSED, "decided", "approve", decided, soon)]
    overdue = [(uuid4(), "open", None, None, decided)]
    await superuser.executemany(
        """
        INSERT INTO approvals (user_id, run_id, thread_id, approval_id, state, decision, decided_at,
          expires_at, interrupt_id, fence, kind, message_id, tool_call_id, server, tool, arguments,
          arguments_sha256, asked, decisions)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $5, 1, 'call', 'm', 'c', 'own', 't', '{}',
          decode('00', 'hex'), '{}', '{approve}')
        """,
        [(person.user_id, run, thread, *each) for each in (asked if run == WAITING else overdue)],
    )


async def make_connection(superuser: asyncpg.Connection, person: Principal) -> None:
    """One that is authorized, is to be looked at, and is being authorized once more."""
    await superuser.executemany(
        "INSERT INTO data_keys (user_id, version, wrapping_key, wrapped) VALUES ($1, $2, 'k', '')",
        [(person.user_id, version) for version in SEALED],
    )
    await superuser.execute(
        """
        INSERT INTO connections
          (user_id, server, connection_id, url, auth, credential, credential_kind, check_wanted_at)
        VALUES ($1, 'own', $2, 'https://a.b', 'oauth', $3, 'oauth', now())
        """,
        *(person.user_id, CONNECTION, SEALED[1]),
    )
    await superuser.execute(
        """
        INSERT INTO authorizations (user_id, state_hash, server, sealed, expires_at)
        VALUES ($1, 's', 'own', $2, now() + interval '1 hour')
        """,
        *(person.user_id, SEALED[2]),
    )
