"""One order of locks: user, key, thread, claims, worker, runs by their ids, models, servers, users
of a model, calls, what belongs to a run, queues.

A deadlock is a ring of transactions, each waiting for the next. While no function, waiting at one
place of the order, holds anything further on, there is no ring. That is what is shown here, of
every function that there is: a stranger holds one row, the function runs into it, and everything
further on must be free.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.runs.cancelling import cancel_runs
from app.runs.runs import IdempotencyKey, RunRequest, create_run
from tenancy.checkpoints.batch import CheckpointBatch
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tests.support.postgres import Role
from tests.support.tenancy import (
    ASSISTANT,
    MODEL,
    TestDatabase,
    claim_runs,
    expire_leases,
    make_thread,
    make_worker,
    queue_run,
)

SITUATIONS = ("running", "lost", "asked to stop", "deleted")
ROUNDS = 2
MEMORY = UUID("00000000-0000-4000-8000-0000000e3035")
KEY = IdempotencyKey("POST /threads/t/runs", "key", b"body")


@dataclass(frozen=True)
class Call:
    """A function of the database's, and who calls it with what."""

    role: Role
    statement: str
    arguments: tuple[Any, ...] = ()
    bound: UUID | None = None
    """Whom the caller binds before, where the function leaves that to it."""


@dataclass(frozen=True)
class Scene:
    """Alice's thread: a run that a worker holds and one that waits; another thread of hers."""

    user: UUID
    thread: UUID
    run: ClaimedRun
    worker: UUID
    runs: list[UUID]

    def calls(self) -> dict[str, Call]:
        """Every function that writes, with what makes it take all the locks that it can."""
        return {
            **self._of_a_person(),
            **self._of_connections(),
            **self._of_a_worker(),
            **self._of_everybody(),
        }

    def _of_a_person(self) -> dict[str, Call]:
        def accept(strategy: str, key: str | None) -> Call:
            about = (self.user, self.thread, uuid4(), ASSISTANT, "agent", "{}", "{}", "t", True)
            known = (KEY.route, key, b"body") if key else (None, None, None)
            return _tenant("accept_run", *about, strategy, 0, 0.0, "{}", *known)

        def cancel(action: str, thread: UUID | None) -> Call:
            return _tenant("cancel_runs", self.user, thread, None, None, action)

        def resume(*known: Any) -> Call:
            waiting = (self.user, self.thread, self.run.run_id, self.run.fence)
            return _tenant("resume_run", *waiting, "{}", uuid4(), *known)

        return {
            "resume_run": resume(None, None, None),
            "resume_run with a key": resume(KEY.route, "new", b"body"),
            **{f"accept_run {how}": accept(how, None) for how in ("enqueue", "reject")},
            **{f"accept_run {how}": accept(how, "new") for how in ("interrupt", "rollback")},
            "accept_run again": accept("enqueue", KEY.key),
            "cancel_runs interrupt": cancel("interrupt", None),
            "cancel_runs rollback": cancel("rollback", self.thread),
            "write_state": _tenant("write_state", self.user, "c", *self._rows()),
            "drop_idempotency_keys": _tenant("drop_idempotency_keys", self.user, 100),
            "prune_deltas": _tenant("prune_deltas", self.user, self.run.run_id, 100),
            "sign_in": _tenant("sign_in", uuid4(), "somebody", "Some", None),
            "begin_write": _tenant("begin_write", self.user),
            "delete_run": self._bound("delete_run", self.run.run_id),
            "delete_thread": self._bound("delete_thread", 5000),
            "delete_thread large": self._bound("delete_thread", 0),
            "delete_thread_rows": _tenant("delete_thread_rows", self.user, self.thread, 100),
            "edit_memory": _tenant("edit_memory", self.user, MEMORY, "corrected", "{}"),
            "remember": _tenant("remember", self.user, None, None, MEMORY, "a fact", "{}"),
            "forget": _tenant("forget", self.user, None, None, None),
            "drop_expired_items": _tenant("drop_expired_items", self.user, 100),
        }

    def _of_connections(self) -> dict[str, Call]:
        def mine(function: str, *arguments: Any) -> Call:
            return _tenant(function, self.user, *arguments)

        now = datetime.now(UTC)
        noted = (1, "available", None, "[]", "v")
        return {
            "add_data_key": mine("add_data_key", 3, "k", b""),
            "rewrap_data_key": mine("rewrap_data_key", 1, b"", "k2", b"w"),
            "reseal_credential": mine("reseal_credential", CONNECTION, SEALED[1], SEALED[2]),
            "drop_unused_data_keys": mine("drop_unused_data_keys"),
            "destroy_data_keys": mine("destroy_data_keys"),
            "add_connection": mine("add_connection", "new", "https://a.b", "none", None, 20),
            "store_connection": mine("store_connection", "tickets", False),
            "want_check": mine("want_check", "own", True, True),
            "drop_credential disconnect": mine("drop_credential", "own", True, "disconnect"),
            "drop_credential remove": mine("drop_credential", "own", True, "remove"),
            "keep_credential": mine(
                "keep_credential", CONNECTION, "oauth", SEALED[2], 60.0, None, False
            ),
            "begin_refresh": mine("begin_refresh", CONNECTION, 1, 60.0),
            "end_refresh": mine("end_refresh", CONNECTION, 1, True),
            "store_listing": mine("store_listing", "own", True, *noted),
            "finish_check": mine("finish_check", CONNECTION, now, *noted),
            "begin_authorization": mine(
                "begin_authorization", "own", True, b"new", SEALED[2], 60.0, 1
            ),
            "take_authorization": mine("take_authorization", b"s"),
            "drop_expired_authorizations": mine("drop_expired_authorizations", 100),
            "claim_checks": _dispatch("claim_checks", 5, 5, 60.0),
        }

    def _of_a_worker(self) -> dict[str, Call]:
        claim = (self.user, self.run.run_id, self.run.fence)
        call = (*claim, self.thread, "message", "call")
        events = (["values"], [b"{}"], [None], [None])
        return {
            "begin_attempt": _tenant("begin_attempt", *claim, self.worker),
            "append_events": _tenant("append_events", *claim, 50, *events),
            "write_checkpoints": _tenant("write_checkpoints", *claim, *self._rows()),
            "begin_effect": _tenant(
                "begin_effect", *call, "server", None, None, "tool", b"", True, 0.0
            ),
            "end_effect": _tenant("end_effect", *call, uuid4(), "done", "{}"),
            "settle_run": _tenant("settle_run", *claim, "success", None, None, 50, *events),
            "remember in a run": _tenant("remember", *claim, MEMORY, "a fact", "{}"),
            "forget in a run": _tenant("forget", *claim, None),
            "keep_embeddings": _tenant(
                "keep_embeddings", *claim, "{}", "m", [MEMORY], ["a fact"], ["{1}"]
            ),
        }

    def _of_everybody(self) -> dict[str, Call]:
        claim = (self.user, self.run.run_id, self.run.fence)
        return {
            "register_worker": _dispatch("register_worker", uuid4(), "host", 1, None, 60.0),
            "renew_lease": _dispatch("renew_lease", self.worker, 60.0),
            "claim_runs": _dispatch("claim_runs", self.worker, 10, "", "{}"),
            "reap_expired_leases": _dispatch("reap_expired_leases"),
            "release_run": _dispatch("release_run", *claim, True),
            "release_runs_but": _dispatch("release_runs_but", self.worker, []),
            "drain_worker": _dispatch("drain_worker", self.worker),
            "retire_worker": _dispatch("retire_worker", self.worker),
            "take_back_run": _dispatch("take_back_run", *claim),
            "remove_worker": _dispatch("remove_worker", self.worker),
            **self._of_the_scheduler(),
        }

    def _of_the_scheduler(self) -> dict[str, Call]:
        asking = (self.run.run_id, self.run.fence, self.worker, MODEL, "{}")
        return {
            "take_seat": _dispatch("take_seat", self.user, uuid4(), *asking),
            "take_up": _dispatch("take_up", self.user, SEATED, "{}"),
            "settle_call": _dispatch("settle_call", self.user, SEATED, MODEL, 1, 1, "unreachable"),
            "serve_model": _dispatch("serve_model", MODEL),
            "tend_seats": _dispatch("tend_seats", 0.0, 0.0),
            "declare_pools": _dispatch("declare_pools", POOLS),
            "set_capacity": _dispatch("set_capacity", "one", 3),
            "pools_to_probe": _dispatch("pools_to_probe", 0.0),
            "reopen_pool": _dispatch("reopen_pool", "two"),
            "set_limits": _dispatch("set_limits", self.user, None, '{"seats": 2}'),
            "clear_limits": _dispatch("clear_limits", self.user),
            "set_plan": _dispatch("set_plan", "default", "{}"),
            "delete_plan": _dispatch("delete_plan", "default"),
            "put_in_order": _dispatch("put_in_order", 0.0, "{}"),
            "admit_request": _tenant("admit_request", self.user, '{"requests_per_minute": 60}'),
            "begin_growth": _tenant("begin_growth", self.user),
        }

    def _bound(self, function: str, argument: Any) -> Call:
        return replace(_tenant(function, self.user, self.thread, argument), bound=self.user)

    def _rows(self) -> tuple[Any, ...]:
        """A checkpoint, and a task's write that is there already, so that it is replaced."""
        return rows(self.thread, uuid4().hex, "c")

    def runs_places(self) -> Mapping[str, str]:
        """How a stranger holds each of the runs."""
        return {
            f"run {n}": f"SELECT 1 FROM runs WHERE run_id = '{run}' FOR UPDATE"
            for n, run in enumerate(self.runs, 1)
        }

    def places(self) -> Mapping[str, str]:
        """The order: how a stranger holds what is at each place."""
        return {
            "user": f"SELECT 1 FROM users WHERE user_id = '{self.user}' FOR UPDATE",
            "key": f"SELECT 1 FROM idempotency_keys WHERE key = '{KEY.key}' FOR UPDATE",
            "thread": f"SELECT 1 FROM threads WHERE thread_id = '{self.thread}' FOR UPDATE",
            "claims": "SELECT pg_advisory_xact_lock(hashtextextended('stoa.claim_runs', 0))",
            "worker": f"SELECT 1 FROM workers WHERE worker_id = '{self.worker}' FOR UPDATE",
            **self.runs_places(),
            **MODELS,
            **WHAT_BELONGS_TO_A_MODEL,
            "servers": AFTER_A_MODEL["servers"],
            **WHAT_BELONGS_TO_A_RUN,
            "queues": AFTER_A_MODEL["queues"],
            **WHAT_BELONGS_TO_A_CONNECTION,
        }


WHAT_BELONGS_TO_A_RUN = {
    table: f"SELECT 1 FROM {table} FOR UPDATE"
    for table in (
        "run_attempts",
        "run_events",
        "checkpoints",
        "checkpoint_blobs",
        "checkpoint_writes",
    )
}
"""One place: who gets there holds the run, so that two can only meet at the run itself."""

MODELS = {"models": "SELECT 1 FROM models ORDER BY model FOR UPDATE"}
WHAT_BELONGS_TO_A_MODEL = {
    "users of a model": "SELECT 1 FROM model_users FOR UPDATE",
    "calls": "SELECT 1 FROM model_calls FOR UPDATE",
}
"""One place too: who gets there holds the model, or holds no server and no queue."""
AFTER_A_MODEL = {
    "servers": "SELECT 1 FROM model_servers ORDER BY server FOR UPDATE",
    "queues": "SELECT 1 FROM run_queues FOR UPDATE",
}

WHAT_BELONGS_TO_A_CONNECTION = {
    "data keys": "SELECT 1 FROM data_keys ORDER BY version FOR UPDATE",
    "connections": "SELECT 1 FROM connections FOR UPDATE",
    "authorizations": "SELECT 1 FROM authorizations FOR UPDATE",
}

CONNECTION = UUID("00000000-0000-4000-8000-000000000c02")
"""Of a server of the person's own, by an authorization; another one is under way."""
SEALED = {version: b"\1" + version.to_bytes(4, "big") + bytes(28) for version in (1, 2)}
"""Under the older and the newest of two data keys."""

POOLS = json.dumps(
    [
        {
            "pool": name,
            "server": name,
            "url": "http://server.test",
            "server_capacity": 2,
            "model": MODEL,
            "capacity": 1,
            "context": 1000,
            "output": 500,
        }
        for name in ("one", "two")
    ]
)
SEATED = UUID("00000000-0000-4000-8000-0000000005ea")
"""A call that has a seat; another one of the same run waits."""

PARTS = {
    *("begin_upkeep", "hold_data_key", "hold_connection", "note_standing"),
    "drop_authorizations",
    *("unbound", "user_id", "identity", "may_become", "guard_transition", "record_attempt"),
    *("hold_fence", "take_idempotency_key", "roll_back", "cancel_open_runs", "end_as_cancelled"),
    *("insert_checkpoints", "insert_events"),
    *("call_up", "run_changed", "user_changed", "leave_queues", "require_room", "require_threads"),
    *("count_usage", "count_tool_calls", "hold_models", "free_seat", "grant_seats", "weigh_user"),
    *("end_overdue", "note_outcome", "serve_anew", "limits_changed", "require_memory"),
    *("begin_origin", "index_item", "memory_prefix", "as_uuid", "memories_of"),
}
"""Called by the others only, in whose transactions they are tried."""

READERS = {
    *("sealed_under", "read_data_keys", "data_key_age", "read_older_credentials"),
    *("vault_overview", "users_to_rekey", "read_connections", "read_connection"),
    *("read_credential",),
    *("begin_read", "read_checkpoint", "read_log", "inspect_run", "count_thread_rows"),
    *("find_effect",),
    *("held_runs", "find_workers", "find_lost_runs", "rank_of", "head_of", "has_room"),
    *(
        "highest_cost",
        "expected_cost",
        "virtual",
        "open_seats",
        "terms_of",
        "has_free_seat",
        "neighbours",
    ),
    *("overdue_calls", "read_pools", "check_agreement", "disagreeing_calls", "unserved_calls"),
    *("disagreeing_queues", "limits_of", "tokens_since", "exhausted_budget", "limits_set"),
    *("plans_set", "users_of_plan", "iso", "limit_use", "memory_bytes", "waiting_runs"),
    *("waiting_calls", "models_of", "read_standing", "run_places", "call_places", "seats_in_use"),
    *("usage_range", "usage_buckets", "usage_json", "read_usage", "usage_overview", "lag_of"),
    *("lines", "model_facts", "pool_facts", "queue_overview", "scheduler_facts"),
    *("waiting_longest", "why_not_claimed", "why_not_seated"),
    *("stems", "words_of", "terms_asked", "similarity", "ranked_items", "recall"),
    *("memories_to_embed", "has_memories", "list_memories", "count_memories"),
}
"""These hold nothing."""


def rows(thread: UUID, checkpoint_id: str, written_on: str) -> tuple[Any, ...]:
    """LangGraph's rows as the functions take them, from the thread on."""
    batch = CheckpointBatch(threads={str(thread)})
    batch.checkpoints["", checkpoint_id] = ("", checkpoint_id, None, "{}", "{}")
    batch.blobs[1,] = ("", "words", checkpoint_id, "empty", b"")
    batch.writes[1,] = ("", written_on, "task", "", -1, "__error__", "null", b"", True)
    return batch.arguments()


def _tenant(function: str, *arguments: Any) -> Call:
    return Call("service", _call(f"tenant.{function}", arguments), arguments)


def _dispatch(function: str, *arguments: Any) -> Call:
    return Call("dispatch", _call(f"dispatch.{function}", arguments), arguments)


def _call(function: str, arguments: tuple[Any, ...]) -> str:
    return (
        f"SELECT count(*) FROM {function}({', '.join(f'${n + 1}' for n in range(len(arguments)))})"
    )


@pytest.fixture
async def scene(
    request: pytest.FixtureRequest,
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    alice: Principal,
) -> Scene:
    """As the test's parameter says: the run is held, its worker is dead, or it is to stop."""
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
        _call("tenant.write_checkpoints", tuple(range(23))),
        run.run_id,
        run.fence,
        *rows(thread, "c", "c"),
    )
    if request.param == "lost":
        await expire_leases(superuser)
    if request.param == "asked to stop":
        await cancel_runs(tenants, alice, run_ids=[run.run_id], action="rollback")
    if request.param == "deleted":
        await expire_leases(superuser)
        await cancel_runs(tenants, alice, thread_id=thread)
        await superuser.execute(
            "UPDATE threads SET deleted_at = now() WHERE thread_id = $1", thread
        )
    ids = await superuser.fetch("SELECT run_id FROM runs ORDER BY run_id")
    await make_calls(superuser, run)
    await make_connection(superuser, alice)
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


every_situation = pytest.mark.parametrize("scene", SITUATIONS, indirect=True)


@asynccontextmanager
async def begun(connection: asyncpg.Connection) -> AsyncIterator[asyncpg.Connection]:
    """A transaction that leaves everything as it was."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield connection
    finally:
        await transaction.rollback()


async def refusal(connection: asyncpg.Connection, call: Call) -> str:
    """Make a call and take it back; the SQLSTATE of what was refused, or an empty string."""
    async with begun(connection):
        try:
            if call.bound:
                await connection.execute("SELECT tenant.begin_write($1)", call.bound)
            await connection.fetch(call.statement, *call.arguments)
        except asyncpg.PostgresError as error:
            return str(error.sqlstate)
    return ""


class Connections:
    """A connection for each part that somebody plays."""

    def __init__(self, database: TestDatabase) -> None:
        self._database = database
        self._open: dict[tuple[Role, int], asyncpg.Connection] = {}

    async def of(self, role: Role, number: int = 0) -> asyncpg.Connection:
        if (role, number) not in self._open:
            self._open[role, number] = await self._database.connect(role)
        return self._open[role, number]

    async def close(self) -> None:
        for connection in self._open.values():
            await connection.close()


@pytest.fixture
async def connections(
    database: TestDatabase, superuser: asyncpg.Connection
) -> AsyncIterator[Connections]:
    # A deadlock is looked for at once, not after a second.
    await superuser.execute(f"ALTER DATABASE \"{database.name}\" SET deadlock_timeout = '20ms'")
    opened = Connections(database)
    try:
        yield opened
    finally:
        await opened.close()


async def waits(observer: asyncpg.Connection, pid: int, calling: asyncio.Task[str]) -> bool:
    """Whether a call has come to wait for somebody; False once it is over."""
    while not calling.done():
        if await observer.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", pid):
            return True
        await asyncio.wait([calling], timeout=0.002)
    return False


async def is_free(observer: asyncpg.Connection, hold: str) -> bool:
    """Whether nobody holds what is at a place, in however weak a way."""
    asked = hold.replace("FOR UPDATE", "FOR UPDATE NOWAIT").replace("pg_adv", "pg_try_adv")
    try:
        async with begun(observer):
            return (await observer.fetchval(asked)) is not False
    except asyncpg.LockNotAvailableError:
        return False


async def held(observer: asyncpg.Connection, places: Mapping[str, str]) -> list[str]:
    """Which places somebody holds."""
    return [place for place, hold in places.items() if not await is_free(observer, hold)]


def _pairs(calls: Mapping[str, Call]) -> Iterator[tuple[str, str]]:
    return itertools.combinations_with_replacement(sorted(calls), 2)


def _dealt(pairs: Iterator[tuple[str, str]], situation: int) -> Iterator[tuple[str, str]]:
    """A situation's part of the pairs: each pair is in one."""
    return itertools.islice(pairs, situation, None, len(SITUATIONS))


class TestAFunctionThatHasToWait:
    @every_situation
    async def test_holds_nothing_further_on(self, scene: Scene, connections: Connections) -> None:
        stranger, observer = [await connections.of("owner", n) for n in range(2)]
        places = scene.places()
        waited: dict[str, set[str]] = {place: set() for place in places}
        for name, call in scene.calls().items():
            caller = await connections.of(call.role)
            for n, (place, hold) in enumerate(places.items()):
                wrong: list[str] = []
                async with begun(stranger):
                    await stranger.fetch(hold)
                    calling = asyncio.create_task(refusal(caller, call))
                    if await waits(observer, caller.get_server_pid(), calling):
                        waited[place].add(name)
                        if place in WHAT_BELONGS_TO_A_RUN:
                            wrong = [] if await held(observer, scene.runs_places()) else ["no run"]
                        elif place in WHAT_BELONGS_TO_A_MODEL:
                            if not await held(observer, MODELS):
                                wrong = await held(observer, AFTER_A_MODEL)
                        else:
                            wrong = await held(observer, dict(list(places.items())[n + 1 :]))
                await calling
                assert not wrong, (name, place, wrong)
        # The stranger was in the way of somebody at each place, or this would show nothing.
        met = {place for place, names in waited.items() if names}
        assert met >= {"user", "key", "thread", "claims", "worker", "run 1", "run 2"}
        assert met >= {"models", "users of a model", "calls", "servers"}


class TestAnyTwoAtOnce:
    @every_situation
    async def test_never_wait_for_each_other_in_a_ring(
        self,
        request: pytest.FixtureRequest,
        nightly: bool,
        scene: Scene,
        connections: Connections,
    ) -> None:
        """Each pair in one situation; at night in all of them, and more than once."""
        calls = scene.calls()
        situation = SITUATIONS.index(request.node.callspec.params["scene"])
        pairs = _pairs(calls) if nightly else _dealt(_pairs(calls), situation)
        for one, other in pairs:
            first = await connections.of(calls[one].role, 0)
            second = await connections.of(calls[other].role, 1)
            for _ in range(ROUNDS if nightly else 1):
                refused = await asyncio.gather(
                    refusal(first, calls[one]), refusal(second, calls[other])
                )
                assert "40P01" not in refused, (one, other)


class TestTheListOfFunctions:
    async def test_has_every_function_that_there_is(self, superuser: asyncpg.Connection) -> None:
        found = await superuser.fetch(
            """
            SELECT proname, prosrc FROM pg_proc
            WHERE pronamespace::regnamespace::text IN ('tenant', 'dispatch')
            """
        )
        scene = Scene(uuid4(), uuid4(), ClaimedRun(uuid4(), uuid4(), 1), uuid4(), [])  # type: ignore[arg-type]
        tried = {name.split()[0] for name in scene.calls()}
        assert {row["proname"] for row in found} == tried | PARTS | READERS
        for row in found:
            if row["proname"] in READERS:
                written = {"INSERT", "UPDATE", "DELETE", "SHARE"} & set(row["prosrc"].split())
                assert not written, row["proname"]
