"""A thread's and its runs' life, step by step at random, against a model of it in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import UUID, uuid4

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.runs.cancelling import CancelAction, cancel_runs
from app.runs.deletion import delete_thread
from app.runs.events import Event, append_events, settle_run
from app.runs.runs import MultitaskStrategy, RunRequest, create_run
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import LeaseLost, StoaError, ThreadBusy
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import OPEN, TERMINAL, RunState
from tests.integration.tenancy.locking import rows
from tests.support.tenancy import ASSISTANT, claim_runs, make_thread, make_worker, sign_in

T = TypeVar("T")

THREADS = 2
HELD = "EXISTS (SELECT 1 FROM run_attempts a WHERE a.run_id = r.run_id AND a.ended_at IS NULL)"
WRITE = f"SELECT tenant.write_checkpoints({', '.join(f'${n}' for n in range(1, 24))})"
BEGIN = "SELECT next_seq FROM tenant.begin_attempt($1, $2, $3, $4)"
ROWS = (
    "(SELECT count(*)::int FROM checkpoints c WHERE c.run_id = r.run_id)"
    " + (SELECT count(*)::int FROM checkpoint_blobs c WHERE c.run_id = r.run_id)"
    " + (SELECT count(*)::int FROM checkpoint_writes c WHERE c.run_id = r.run_id)"
)
ROWS_PER_WRITE = 3

strategies = st.sampled_from(["enqueue", "reject", "interrupt", "rollback"])
actions: st.SearchStrategy[CancelAction] = st.sampled_from(["interrupt", "rollback"])
outcomes = st.sampled_from(["success", "error", "timeout", "waiting"]).map(RunState)
numbers = st.integers(0, 1000)


@dataclass
class Expected:
    """A run as the model has it."""

    thread: UUID
    state: RunState = RunState.PENDING
    fence: int = 0
    spent: int = 0
    cancel: str | None = None
    events: int = 0
    rows: int = 0
    worker: UUID | None = None


@dataclass
class World:
    """The real thing, and who takes part."""

    loop: asyncio.AbstractEventLoop
    tenants: TenantDatabase
    dispatch: DispatchDatabase
    superuser: asyncpg.Connection

    def do(self, what: Coroutine[Any, Any, T]) -> T:
        """Hypothesis' steps are plain functions, in a thread of their own."""
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(60)


@dataclass
class Worker:
    """A worker as the model has it."""

    is_alive: bool = True
    is_draining: bool = False


@dataclass
class Model:
    """What must be so. Runs in the order in which they were accepted."""

    runs: dict[UUID, Expected] = field(default_factory=dict)
    workers: dict[UUID, Worker] = field(default_factory=dict)

    def open_on(self, thread: UUID) -> list[tuple[UUID, Expected]]:
        return [(i, r) for i, r in self.runs.items() if r.thread == thread and r.state in OPEN]

    def heads(self) -> list[UUID]:
        first: dict[UUID, UUID] = {}
        for run_id, run in self.runs.items():
            if run.state in OPEN:
                first.setdefault(run.thread, run_id)
        return [i for i in self.runs if i in first.values() and self.runs[i].state == "pending"]

    def is_held(self, run: Expected) -> bool:
        return run.worker is not None and self.workers[run.worker].is_alive

    def holds(self, claim: ClaimedRun) -> bool:
        """Whether something may be written under a claim."""
        run = self.runs.get(claim.run_id)
        return run is not None and run.fence == claim.fence and self.is_held(run)

    def cancel(self, run: Expected, action: CancelAction) -> None:
        run.cancel = "rollback" if run.cancel == "rollback" else action
        if not self.is_held(run):
            self.end_as_cancelled(run)

    def end_as_cancelled(self, run: Expected) -> None:
        run.state, run.worker, run.fence = RunState.CANCELLED, None, run.fence + 1
        if run.cancel == "rollback":
            run.rows = 0

    def give_back(self, run: Expected, *, spent: bool) -> None:
        run.state, run.worker, run.fence = RunState.PENDING, None, run.fence + 1
        run.spent += spent


class Life(RuleBasedStateMachine):
    """Every step, taken in the database and in the model."""

    world: World

    @initialize()
    def begin(self) -> None:
        self.person = self.world.do(sign_in(self.world.tenants, f"person {uuid4()}"))
        self.threads = [self.new_thread() for _ in range(THREADS)]
        self.model = Model()
        self.claims: list[ClaimedRun] = []
        self.ended: dict[UUID, RunState] = {}

    def teardown(self) -> None:
        self.world.do(self.world.superuser.execute("DELETE FROM threads"))
        self.world.do(self.world.superuser.execute("DELETE FROM workers"))

    def new_thread(self) -> UUID:
        return self.world.do(make_thread(self.world.tenants, self.person))

    def call(self, function: str, *arguments: Any) -> Any:
        return self.world.do(self.world.tenants.call(self.person, function, *arguments))

    def refused(self, what: Coroutine[Any, Any, Any], error: type[StoaError]) -> None:
        with pytest.raises(error):
            self.world.do(what)

    @rule(number=numbers, strategy=strategies)
    def accept(self, number: int, strategy: MultitaskStrategy) -> None:
        thread = self.threads[number % len(self.threads)]
        accepting = create_run(
            self.world.tenants,
            self.person,
            thread_id=thread,
            assistant_id=ASSISTANT,
            graph_id="agent",
            request=RunRequest(),
            multitask_strategy=strategy,
        )
        before = self.model.open_on(thread)
        if strategy == "reject" and before:
            self.refused(accepting, ThreadBusy)
            return
        accepted = self.world.do(accepting)
        told = [
            (run_id, run)
            for run_id, run in before
            if strategy in ("interrupt", "rollback") or run.state == RunState.WAITING
        ]
        for _, run in told:
            self.model.cancel(run, "rollback" if strategy == "rollback" else "interrupt")
        assert set(accepted.stopping) == {i for i, r in told if r.state == RunState.RUNNING}
        assert set(accepted.ended) == {i for i, r in told if r.state == RunState.CANCELLED}
        self.model.runs[accepted.run.run_id] = Expected(thread)

    @rule()
    def start_worker(self) -> None:
        self.model.workers[self.world.do(make_worker(self.world.dispatch))] = Worker()

    @precondition(lambda self: self.model.workers)
    @rule(number=numbers, slots=st.integers(1, 3))
    def claim(self, number: int, slots: int) -> None:
        worker_id, worker = self.worker(number)
        claiming = claim_runs(self.world.dispatch, worker_id, slots)
        if not worker.is_alive or worker.is_draining:
            self.refused(claiming, LeaseLost)
            return
        claimed = self.world.do(claiming)
        assert [run.run_id for run in claimed] == self.model.heads()[:slots]
        for claim in claimed:
            run = self.model.runs[claim.run_id]
            run.state, run.fence, run.worker = RunState.RUNNING, run.fence + 1, worker_id
            assert claim.fence == run.fence
        self.claims += claimed

    @precondition(lambda self: self.claims)
    @rule(number=numbers)
    def begin_attempt(self, number: int) -> None:
        claim = self.claims[number % len(self.claims)]
        worker = self.model.runs[claim.run_id].worker if claim.run_id in self.model.runs else None
        beginning = self.world.tenants.call(
            claim, BEGIN, claim.run_id, claim.fence, worker or uuid4()
        )
        if not self.model.holds(claim):
            self.refused(beginning, LeaseLost)
            return
        run = self.model.runs[claim.run_id]
        run.events += 1
        assert self.world.do(beginning)[0]["next_seq"] == run.events + 1

    @precondition(lambda self: self.claims)
    @rule(number=numbers, many=st.integers(1, 3))
    def append(self, number: int, many: int) -> None:
        claim = self.claims[number % len(self.claims)]
        first = self.model.runs[claim.run_id].events + 1 if claim.run_id in self.model.runs else 1
        said = [Event("values", b"{}")] * many
        appending = append_events(self.world.tenants, claim, first, said)
        if not self.model.holds(claim):
            self.refused(appending, LeaseLost)
            return
        self.world.do(appending)
        self.model.runs[claim.run_id].events += many

    @precondition(lambda self: self.claims)
    @rule(number=numbers)
    def write(self, number: int) -> None:
        claim = self.claims[number % len(self.claims)]
        known = self.model.runs.get(claim.run_id)
        name = uuid4().hex
        handed_in = rows(known.thread if known else self.threads[0], name, name)
        writing = self.world.tenants.call(claim, WRITE, claim.run_id, claim.fence, *handed_in)
        if known is None or not self.model.holds(claim):
            self.refused(writing, LeaseLost)
            return
        self.world.do(writing)
        known.rows += ROWS_PER_WRITE

    @precondition(lambda self: self.claims)
    @rule(number=numbers, outcome=outcomes)
    def settle(self, number: int, outcome: RunState) -> None:
        claim = self.claims[number % len(self.claims)]
        settling = settle_run(self.world.tenants, claim, outcome, 1, [])
        if not self.model.holds(claim):
            self.refused(settling, LeaseLost)
            return
        run = self.model.runs[claim.run_id]
        reached = self.world.do(settling)
        if run.cancel:
            assert reached == RunState.CANCELLED
            self.model.end_as_cancelled(run)
        else:
            assert reached == outcome
            run.state, run.worker = outcome, None

    @precondition(lambda self: self.claims)
    @rule(number=numbers, spend=st.booleans())
    def release(self, number: int, spend: bool) -> None:
        claim = self.claims[number % len(self.claims)]
        run = self.model.runs.get(claim.run_id)
        holds = run is not None and run.worker is not None and run.fence == claim.fence
        assert self.world.do(self.world.dispatch.release_run(claim, spend=spend)) == holds
        if run is not None and holds:
            self.model.give_back(run, spent=spend)

    @precondition(lambda self: self.model.workers)
    @rule(number=numbers)
    def lose_worker(self, number: int) -> None:
        worker_id, worker = self.worker(number)
        over = "UPDATE workers SET lease_until = now() - interval '1 s' WHERE worker_id = $1"
        self.world.do(self.world.superuser.execute(over, worker_id))
        worker.is_alive = False

    @rule()
    def reap(self) -> None:
        lost = [
            run
            for run in self.model.runs.values()
            if run.worker is not None and not self.model.is_held(run)
        ]
        assert self.world.do(self.world.dispatch.reap_expired_leases()) == len(lost)
        for run in lost:
            self.model.give_back(run, spent=True)

    @precondition(lambda self: self.model.workers)
    @rule(number=numbers, leaves=st.booleans())
    def drain(self, number: int, leaves: bool) -> None:
        worker_id, worker = self.worker(number)
        worker.is_draining = True
        self.world.do(self.world.dispatch.drain_worker(worker_id))
        if leaves:
            held = [run for run in self.model.runs.values() if run.worker == worker_id]
            assert self.world.do(self.world.dispatch.retire_worker(worker_id)) == len(held)
            worker.is_alive = False
            for run in held:
                self.model.give_back(run, spent=False)

    @precondition(lambda self: self.model.runs)
    @rule(number=numbers, action=actions)
    def cancel_one(self, number: int, action: CancelAction) -> None:
        run_id = list(self.model.runs)[number % len(self.model.runs)]
        self.cancel(action, {run_id}, run_ids=[run_id])

    @rule(number=numbers, action=actions)
    def cancel_a_threads(self, number: int, action: CancelAction) -> None:
        thread = self.threads[number % len(self.threads)]
        of_it = {run_id for run_id, _ in self.model.open_on(thread)}
        self.cancel(action, of_it, thread_id=thread)

    @rule(action=actions, states=st.sets(st.sampled_from(sorted(OPEN)), min_size=1))
    def cancel_all(self, action: CancelAction, states: set[RunState]) -> None:
        of_them = {run_id for run_id, run in self.model.runs.items() if run.state in states}
        self.cancel(action, of_them, states=states)

    def cancel(self, action: CancelAction, meant: set[UUID], **conditions: Any) -> None:
        cancelling = cancel_runs(self.world.tenants, self.person, action=action, **conditions)
        answered = {run.run_id: run.state for run in self.world.do(cancelling)}
        hit = {i: r for i, r in self.model.runs.items() if i in meant and r.state in OPEN}
        for run in hit.values():
            self.model.cancel(run, action)
        assert answered == {run_id: run.state for run_id, run in hit.items()}

    @rule(number=numbers)
    def delete_a_thread(self, number: int) -> None:
        gone = self.threads.pop(number % len(self.threads))
        self.world.do(self.delete(gone))
        self.model.runs = {i: r for i, r in self.model.runs.items() if r.thread != gone}
        self.ended = {i: s for i, s in self.ended.items() if i in self.model.runs}
        self.threads.append(self.new_thread())

    async def delete(self, thread: UUID) -> None:
        async with self.world.tenants.writing(self.person) as tx:
            await delete_thread(tx, thread)

    def worker(self, number: int) -> tuple[UUID, Worker]:
        return list(self.model.workers.items())[number % len(self.model.workers)]

    @invariant()
    def the_database_is_as_the_model(self) -> None:
        found = self.world.do(
            self.world.superuser.fetch(
                f"""
                SELECT r.run_id, r.thread_id AS thread, r.state::text, r.fence,
                  r.attempts_spent AS spent, r.cancel_action AS cancel, r.worker_id AS worker,
                  {HELD} AS is_held, {ROWS} AS rows,
                  (SELECT count(*)::int FROM run_events e WHERE e.run_id = r.run_id) AS events
                FROM runs r ORDER BY r.created_at
                """
            )
        )
        actual = {
            row["run_id"]: Expected(
                **{k: row[k] for k in set(row.keys()) - {"run_id", "is_held", "state"}},
                state=RunState(row["state"]),
            )
            for row in found
        }
        assert list(actual) == list(self.model.runs)
        assert actual == {i: replace(r) for i, r in self.model.runs.items()}
        for row in found:
            assert row["is_held"] == (row["state"] == "running")

    @invariant()
    def at_most_one_run_holds_a_thread(self) -> None:
        for thread in self.threads:
            holding = [
                run
                for _, run in self.model.open_on(thread)
                if run.state != RunState.PENDING or run.fence > 0
            ]
            assert len(holding) <= 1

    @invariant()
    def what_has_ended_stays_as_it_ended(self) -> None:
        for run_id, run in self.model.runs.items():
            if run.state in TERMINAL:
                assert self.ended.setdefault(run_id, run.state) == run.state


class TestTheLifeOfRuns:
    @pytest.mark.timeout(3600)
    async def test_is_as_the_model_says_whatever_happens(
        self,
        nightly: bool,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        world = World(asyncio.get_running_loop(), tenants, dispatch, superuser)
        machine = type("LifeHere", (Life,), {"world": world})
        await asyncio.to_thread(
            run_state_machine_as_test,
            machine,
            settings=settings(
                max_examples=500 if nightly else 40,
                stateful_step_count=60 if nightly else 30,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
