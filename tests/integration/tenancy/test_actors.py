"""Web processes, workers and reapers, all at once and at random, on a few threads.

The database itself writes down each step that was committed; afterwards all of it is looked at.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.runs.cancelling import cancel_runs
from app.runs.deletion import delete_thread
from app.runs.events import Event, append_events, settle_run
from app.runs.runs import RunRequest, create_run
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import LeaseLost, NotFound, ThreadBusy
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import FIRST, OPEN, RunState, may_become
from tests.integration.tenancy.locking import rows
from tests.support.tenancy import ASSISTANT, TestDatabase, claim_runs, make_thread, make_worker

ACTORS = 8
EXPECTED_REFUSALS = (LeaseLost, ThreadBusy, NotFound)
BEGIN = "SELECT run_thread_id, next_seq FROM tenant.begin_attempt($1, $2, $3, $4)"
WRITE = f"SELECT tenant.write_checkpoints({', '.join(f'${n}' for n in range(1, 24))})"
WRITE_STATE = f"SELECT tenant.write_state({', '.join(f'${n}' for n in range(1, 23))})"

KEEP_HISTORY = """
CREATE TABLE history (
  at bigint GENERATED ALWAYS AS IDENTITY, run_id uuid, thread_id uuid, created_at timestamptz,
  before text, after text, fence bigint, fence_before bigint, asked boolean
);
CREATE FUNCTION keep_history() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO history (run_id, thread_id, created_at, before, after, fence, fence_before, asked)
  VALUES (NEW.run_id, NEW.thread_id, NEW.created_at,
    CASE WHEN TG_OP = 'UPDATE' THEN OLD.state::text END, NEW.state::text, NEW.fence,
    CASE WHEN TG_OP = 'UPDATE' THEN OLD.fence ELSE 0 END, NEW.cancel_requested_at IS NOT NULL);
  RETURN NULL;
END $$;
CREATE TRIGGER keep_history AFTER INSERT OR UPDATE ON runs
FOR EACH ROW EXECUTE FUNCTION keep_history();
"""


@dataclass
class Stage:
    """What the actors share: doors, threads, workers, new claims, and every one there ever was."""

    tenants: TenantDatabase
    dispatch: DispatchDatabase
    superuser: asyncpg.Connection
    people: list[Principal]
    threads: list[tuple[Principal, UUID]]
    workers: list[UUID]
    new: list[tuple[ClaimedRun, UUID]] = field(default_factory=list)
    claims: list[ClaimedRun] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    accepted: set[UUID] = field(default_factory=set)
    admin: asyncio.Lock = field(default_factory=asyncio.Lock)


class Actor:
    """Does one thing after another, mostly with what is newest."""

    def __init__(self, stage: Stage, seed: str) -> None:
        self.stage = stage
        self.random = random.Random(seed)

    async def act(self, steps: int) -> None:
        deeds: list[tuple[int, Callable[[], Awaitable[Any]]]] = [
            (8, self.accept),
            (8, self.claim),
            (10, self.execute),
            (4, self.append),
            (4, self.write),
            (4, self.settle),
            (2, self.release),
            (4, self.cancel),
            (2, self.change_state),
            (2, self.reap),
            (1, self.lose_a_worker),
            (1, self.retire),
            (1, self.start_worker),
            (1, self.delete),
        ]
        weights = [weight for weight, _ in deeds]
        for _ in range(steps):
            (deed,) = self.random.choices([deed for _, deed in deeds], weights)
            with suppress(*EXPECTED_REFUSALS):
                await deed()
                self.stage.done[deed.__name__] += 1

    async def accept(self) -> None:
        person, thread = self.random.choice(self.stage.threads)
        accepted = await create_run(
            self.stage.tenants,
            person,
            thread_id=thread,
            assistant_id=ASSISTANT,
            graph_id="agent",
            request=RunRequest(),
            multitask_strategy=self.random.choice(["enqueue", "reject", "interrupt", "rollback"]),
        )
        self.stage.accepted.add(accepted.run.run_id)

    async def claim(self) -> None:
        worker = self.random.choice(self.stage.workers)
        claimed = await claim_runs(self.stage.dispatch, worker, self.random.randint(1, 3), 3)
        self.stage.new += [(claim, worker) for claim in claimed]
        self.stage.claims += claimed

    async def execute(self) -> None:
        """A whole attempt, as the one worker makes it; others come in between."""
        if not self.stage.new:
            raise LeaseLost
        claim, worker = self.stage.new.pop(self.random.randrange(len(self.stage.new)))
        begun = (claim.run_id, claim.fence, worker)
        ((thread, seq),) = await self.stage.tenants.call(claim, BEGIN, *begun)
        for _ in range(self.random.randint(0, 3)):
            await append_events(self.stage.tenants, claim, seq, [self.event(claim)])
            seq += 1
            await self.write_rows(claim, thread)
        await self.settle_claim(claim, seq)

    async def append(self) -> None:
        """From long ago, as a worker that was frozen would."""
        claim = self.some_claim()
        if await self.is_others(claim):
            await append_events(self.stage.tenants, claim, 500, [self.event(claim)])

    async def write(self) -> None:
        claim = self.some_claim()
        _, thread = self.random.choice(self.stage.threads)
        await self.write_rows(claim, thread)

    async def settle(self) -> None:
        claim = self.some_claim()
        if await self.is_others(claim):
            await self.settle_claim(claim, 500)

    async def release(self) -> None:
        claim = self.some_claim()
        await self.stage.dispatch.release_run(claim, spend=self.random.random() < 0.5)

    async def cancel(self) -> None:
        person, thread = self.random.choice(self.stage.threads)
        await cancel_runs(
            self.stage.tenants,
            person,
            thread_id=self.random.choice([thread, None]),
            action=self.random.choice(["interrupt", "rollback"]),
        )

    async def change_state(self) -> None:
        person, thread = self.random.choice(self.stage.threads)
        name = uuid4().hex
        await self.stage.tenants.call(person, WRITE_STATE, None, *rows(thread, name, name))

    async def reap(self) -> None:
        await self.stage.dispatch.reap_expired_leases()

    async def lose_a_worker(self) -> None:
        worker = self.random.choice(self.stage.workers)
        async with self.stage.admin:
            await self.stage.superuser.execute(
                "UPDATE workers SET lease_until = now() WHERE worker_id = $1", worker
            )

    async def retire(self) -> None:
        await self.stage.dispatch.retire_worker(self.random.choice(self.stage.workers))

    async def start_worker(self) -> None:
        new = await make_worker(self.stage.dispatch)
        self.stage.workers[self.random.randrange(len(self.stage.workers))] = new

    async def delete(self) -> None:
        place = self.random.randrange(len(self.stage.threads))
        person, thread = self.stage.threads[place]
        self.stage.threads[place] = (person, await make_thread(self.stage.tenants, person))
        async with self.stage.tenants.writing(person) as tx:
            await delete_thread(tx, thread)

    def some_claim(self) -> ClaimedRun:
        if not self.stage.claims:
            raise LeaseLost
        newest = self.stage.claims[-4:]
        return self.random.choice(newest if self.random.random() < 0.8 else self.stage.claims)

    async def is_others(self, claim: ClaimedRun) -> bool:
        """Whether a claim is an old one. One that is not will never be again."""
        async with self.stage.admin:
            fence = await self.stage.superuser.fetchval(
                "SELECT fence FROM runs WHERE run_id = $1 AND state = 'running'", claim.run_id
            )
        return bool(fence != claim.fence)

    async def write_rows(self, claim: ClaimedRun, thread: UUID) -> None:
        """A checkpoint of its own, and one write on top of what others wrote."""
        handed_in = rows(thread, uuid4().hex, "shared")
        await self.stage.tenants.call(claim, WRITE, claim.run_id, claim.fence, *handed_in)

    async def settle_claim(self, claim: ClaimedRun, seq: int) -> None:
        outcome = RunState(self.random.choice(["success", "success", "error", "waiting"]))
        await settle_run(self.stage.tenants, claim, outcome, seq, [self.event(claim)])

    def event(self, claim: ClaimedRun) -> Event:
        return Event("values", str(claim.fence).encode())


@pytest.fixture
async def stage(
    database: TestDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    tenants: TenantDatabase,
    alice: Principal,
    bob: Principal,
) -> Any:
    await superuser.execute(f"ALTER DATABASE \"{database.name}\" SET deadlock_timeout = '20ms'")
    await superuser.execute(KEEP_HISTORY)
    doors = TenantDatabase(database.settings("service", pool_size=ACTORS))
    threads = [(alice, await make_thread(tenants, alice)) for _ in range(2)]
    threads.append((bob, await make_thread(tenants, bob)))
    crossing = DispatchDatabase(database.settings("dispatch", pool_size=ACTORS))
    workers = [await make_worker(dispatch) for _ in range(3)]
    yield Stage(doors, crossing, superuser, [alice, bob], threads, workers)
    await doors.close()
    await crossing.close()


class TestManyAtOnce:
    @pytest.mark.timeout(3600)
    async def test_keep_every_promise(
        self, nightly: bool, stage: Stage, record_property: Callable[[str, object], None]
    ) -> None:
        seed = random.randrange(2**32)
        record_property("seed", seed)
        print(f"seed {seed}")  # noqa: T201 - shown when the test fails
        actors = [Actor(stage, f"{seed} {n}") for n in range(ACTORS)]
        await asyncio.gather(*(actor.act(20_000 if nightly else 250) for actor in actors))
        assert {"accept", "execute", "cancel", "claim", "reap"} <= set(stage.done), stage.done
        await assert_promises(stage.superuser)


async def assert_promises(superuser: asyncpg.Connection) -> None:
    """Everything that must be so, whoever did what when."""
    await assert_history(superuser)
    assert await superuser.fetch(_HOLDING_TWICE) == []
    assert await superuser.fetch(_ATTEMPTS_THAT_DISAGREE) == []
    assert await superuser.fetch(_ROLLED_BACK_ROWS) == []
    assert await superuser.fetch(_LOGS_WITH_GAPS) == []
    assert await superuser.fetch(_LOGS_OUT_OF_TURN) == []
    assert await superuser.fetchval("SELECT count(*) FROM runs r WHERE " + _UNOWNED) == 0
    await superuser.execute("SELECT pg_stat_force_next_flush()")
    assert (
        await superuser.fetchval(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        )
        == 0
    )


_HOLDING_TWICE = """
SELECT thread_id FROM runs
WHERE state IN ('running', 'waiting') OR (state = 'pending' AND fence > 0)
GROUP BY thread_id HAVING count(*) > 1
"""
_ATTEMPTS_THAT_DISAGREE = """
SELECT r.run_id, r.state, count(a.*) FROM runs r
LEFT JOIN run_attempts a ON a.run_id = r.run_id AND a.ended_at IS NULL
GROUP BY r.user_id, r.run_id HAVING (r.state = 'running')::int <> count(a.*)
UNION ALL
SELECT r.run_id, r.state, count(a.*) FROM runs r
LEFT JOIN run_attempts a ON a.run_id = r.run_id AND a.ended_by = 'lost'
GROUP BY r.user_id, r.run_id HAVING r.attempts_spent <> count(a.*)
"""
_ROLLED_BACK_ROWS = """
SELECT r.run_id FROM runs r
WHERE r.state = 'cancelled' AND r.cancel_action = 'rollback'
  AND EXISTS (SELECT 1 FROM checkpoints c WHERE c.run_id = r.run_id)
"""
_LOGS_WITH_GAPS = "SELECT run_id FROM run_events GROUP BY run_id HAVING max(seq) <> count(*)"
_LOGS_OUT_OF_TURN = """
SELECT e.run_id FROM run_events e JOIN run_events later USING (run_id)
WHERE e.event = 'values' AND later.event = 'values' AND e.seq < later.seq
  AND convert_from(e.data, 'UTF8')::int > convert_from(later.data, 'UTF8')::int
"""
_UNOWNED = (
    "r.state = 'running' AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.worker_id = r.worker_id)"
)


async def assert_history(superuser: asyncpg.Connection) -> None:
    """Each committed step is one that the machine has; claims came in the order of acceptance."""
    last: dict[UUID, tuple[str, int]] = {}
    first_claims: dict[UUID, list[Any]] = defaultdict(list)
    for step in await superuser.fetch("SELECT * FROM history ORDER BY at"):
        state, fence = last.get(step["run_id"], (None, 0))
        assert (step["before"], step["fence_before"]) == (state, fence), step
        if state is None:
            assert step["after"] == FIRST
        elif state != step["after"]:
            assert may_become(RunState(state), RunState(step["after"])), step
        assert step["fence"] >= fence, step
        if step["asked"]:
            assert RunState(step["after"]) in OPEN | {RunState.CANCELLED}, step
        if (step["after"], step["fence"]) == ("running", 1) and state == "pending":
            first_claims[step["thread_id"]].append(step["created_at"])
        last[step["run_id"]] = (step["after"], step["fence"])
    assert last
    for claims in first_claims.values():
        assert claims == sorted(claims)
