"""A message for a thread that is busy: what becomes of it, and of the runs before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import pytest

from app.runs.events import settle_run
from app.runs.runs import AcceptedRun, MultitaskStrategy, RunRequest, create_run
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import ThreadBusy
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import RunState
from tests.integration.tenancy.locking import rows
from tests.support.tenancy import (
    ASSISTANT,
    TestDatabase,
    claim_runs,
    expire_leases,
    make_thread,
    make_worker,
)

SIX = 6
OPEN_STATES = ("pending", "running", "waiting", "queued again", "lost")
WRITE_STATE = f"SELECT tenant.write_state({', '.join(f'${n}' for n in range(1, 23))})"


class Thread:
    """A thread of Alice's, messages to it, and what a worker does for it."""

    def __init__(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        person: Principal,
        thread_id: UUID,
    ) -> None:
        self.tenants = tenants
        self.dispatch = dispatch
        self.superuser = superuser
        self.person = person
        self.thread_id = thread_id

    async def post(self, strategy: MultitaskStrategy = "enqueue") -> AcceptedRun:
        return await create_run(
            self.tenants,
            self.person,
            thread_id=self.thread_id,
            assistant_id=ASSISTANT,
            graph_id="agent",
            request=RunRequest(),
            multitask_strategy=strategy,
        )

    async def claim(self) -> list[ClaimedRun]:
        return await claim_runs(self.dispatch, await make_worker(self.dispatch), 10, 10)

    async def put_into(self, situation: str) -> UUID:
        """A run on the thread that has come as far as the situation says."""
        run_id = (await self.post()).run.run_id
        if situation == "pending":
            return run_id
        (claim,) = await self.claim()
        if situation == "waiting":
            await settle_run(self.tenants, claim, RunState.WAITING, 1, [])
        elif situation == "queued again":
            await self.dispatch.release_run(claim, spend=True)
        elif situation == "lost":
            await expire_leases(self.superuser)
        return run_id

    async def state(self, run_id: UUID) -> str:
        """A run's state, and whether its cancel was asked for."""
        row = await self.superuser.fetchrow(
            "SELECT state::text, cancel_action FROM runs WHERE run_id = $1", run_id
        )
        return " ".join(filter(None, row))


@pytest.fixture
async def thread(
    database: TestDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    tenants: TenantDatabase,
    alice: Principal,
) -> AsyncIterator[Thread]:
    doors = TenantDatabase(database.settings("service", pool_size=SIX))
    yield Thread(doors, dispatch, superuser, alice, await make_thread(tenants, alice))
    await doors.close()


class TestReject:
    async def test_lets_exactly_one_of_six_in(self, thread: Thread) -> None:
        for _ in range(5):
            answers = await asyncio.gather(
                *(thread.post("reject") for _ in range(SIX)), return_exceptions=True
            )
            accepted = [answer for answer in answers if isinstance(answer, AcceptedRun)]
            refused = [answer for answer in answers if isinstance(answer, ThreadBusy)]
            assert (len(accepted), len(refused)) == (1, SIX - 1)
            (claim,) = await thread.claim()
            await settle_run(thread.tenants, claim, RunState.SUCCESS, 1, [])

    @pytest.mark.parametrize("situation", OPEN_STATES)
    async def test_leaves_a_thread_alone_that_has_a_run(
        self, situation: str, thread: Thread
    ) -> None:
        before = await thread.put_into(situation)
        state = await thread.state(before)
        with pytest.raises(ThreadBusy):
            await thread.post("reject")
        assert await thread.state(before) == state


class TestEnqueue:
    @pytest.mark.parametrize("situation", sorted(set(OPEN_STATES) - {"waiting"}))
    async def test_waits_for_the_run_before_it(self, situation: str, thread: Thread) -> None:
        before = await thread.put_into(situation)
        accepted = await thread.post("enqueue")
        assert (accepted.stopping, accepted.ended) == ((), ())
        await thread.dispatch.reap_expired_leases()
        claimed = [claim.run_id for claim in await thread.claim()]
        assert claimed == ([] if situation == "running" else [before])

    async def test_takes_the_place_of_one_that_waits_for_a_person(self, thread: Thread) -> None:
        before = await thread.put_into("waiting")
        accepted = await thread.post("enqueue")
        assert accepted.ended == (before,)
        assert await thread.state(before) == "cancelled interrupt"
        assert [claim.run_id for claim in await thread.claim()] == [accepted.run.run_id]

    async def test_of_six_at_once_runs_them_one_by_one_as_they_were_accepted(
        self, thread: Thread
    ) -> None:
        posted = await asyncio.gather(*(thread.post() for _ in range(SIX)))
        in_order = [a.run.run_id for a in sorted(posted, key=lambda a: a.run.created_at)]
        assert len({accepted.run.created_at for accepted in posted}) == SIX
        done = []
        for _ in range(SIX):
            (claim,) = await thread.claim()
            done.append(claim.run_id)
            await settle_run(thread.tenants, claim, RunState.SUCCESS, 1, [])
        assert done == in_order


class TestInterruptAndRollback:
    @pytest.mark.parametrize("strategy", ["interrupt", "rollback"])
    @pytest.mark.parametrize("situation", OPEN_STATES)
    async def test_cancel_whatever_is_open(
        self, situation: str, strategy: MultitaskStrategy, thread: Thread
    ) -> None:
        before = await thread.put_into(situation)
        accepted = await thread.post(strategy)
        is_held = situation == "running"
        assert accepted.stopping == ((before,) if is_held else ())
        assert accepted.ended == (() if is_held else (before,))
        expected = "running" if is_held else "cancelled"
        assert await thread.state(before) == f"{expected} {strategy}"
        claimed = [claim.run_id for claim in await thread.claim()]
        assert claimed == ([] if is_held else [accepted.run.run_id])

    async def test_cancel_the_whole_queue_behind_it_too(self, thread: Thread) -> None:
        held = await thread.put_into("running")
        queued = [(await thread.post()).run.run_id for _ in range(3)]
        accepted = await thread.post("interrupt")
        assert accepted.stopping == (held,)
        assert set(accepted.ended) == set(queued)

    async def test_of_six_at_once_leave_one(self, thread: Thread) -> None:
        await thread.put_into("pending")
        posted = await asyncio.gather(*(thread.post("interrupt") for _ in range(SIX)))
        last = max(posted, key=lambda accepted: accepted.run.created_at)
        assert [claim.run_id for claim in await thread.claim()] == [last.run.run_id]

    async def test_are_followed_once_the_run_before_has_stopped(self, thread: Thread) -> None:
        await thread.post()
        (held,) = await thread.claim()
        accepted = await thread.post("interrupt")
        assert await thread.claim() == []
        reached = await settle_run(thread.tenants, held, RunState.SUCCESS, 1, [])
        assert reached == RunState.CANCELLED
        assert [claim.run_id for claim in await thread.claim()] == [accepted.run.run_id]


class TestARunThatIsQueuedAgain:
    async def test_stays_the_head_though_the_clock_was_set_back(self, thread: Thread) -> None:
        first = await thread.put_into("queued again")
        # As if all that was before had been an hour later than what comes now.
        await thread.superuser.execute(
            "UPDATE runs SET created_at = created_at + interval '1 h',"
            " due_at = due_at + interval '1 h'"
        )
        second = (await thread.post()).run
        third = (await thread.post()).run
        (claim,) = await thread.claim()
        assert claim.run_id == first
        await settle_run(thread.tenants, claim, RunState.SUCCESS, 1, [])
        (claim,) = await thread.claim()
        assert claim.run_id == second.run_id
        assert second.created_at < third.created_at


class TestAChangeOfState:
    @pytest.mark.parametrize("situation", ["running", "waiting", "queued again", "lost"])
    async def test_is_refused_while_a_run_holds_the_thread(
        self, situation: str, thread: Thread
    ) -> None:
        await thread.put_into(situation)
        with pytest.raises(ThreadBusy):
            await self.change(thread, "mine")

    async def test_is_refused_once_the_thread_has_gone_on(self, thread: Thread) -> None:
        await self.change(thread, "first")
        with pytest.raises(ThreadBusy):
            await self.change(thread, "second", head=None)
        await self.change(thread, "second", head="first")

    async def test_is_not_overtaken_by_a_run_that_is_claimed_meanwhile(
        self, thread: Thread, database: TestDatabase
    ) -> None:
        """The run would go on from the state of before, and the change would be lost."""
        await thread.put_into("pending")
        service = await database.connect("service")
        try:
            async with service.transaction():
                handed_in = rows(thread.thread_id, "mine", "mine")
                await service.execute(WRITE_STATE, thread.person.user_id, None, *handed_in)
                assert await thread.claim() == []
        finally:
            await service.close()
        assert len(await thread.claim()) == 1

    async def change(self, thread: Thread, name: str, head: str | None = None) -> None:
        handed_in = rows(thread.thread_id, name, name)
        await thread.tenants.call(thread.person, WRITE_STATE, head, *handed_in)
