"""What a run asks is closed without a decision: taken back, too late, or gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from uuid import UUID

import asyncpg
import pytest

from app.runs.approvals import ApprovalClosed, ApprovalFilter, count_approvals
from app.runs.cancelling import cancel_runs
from app.runs.deciding import Decision
from app.runs.deletion import delete_run, delete_thread
from app.runs.runs import RunRequest, create_run
from app.worker.expire_approvals import ApprovalExpiry
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.signals import APPROVAL_CHANGED, Announcer, Listener
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import ApprovalNotFound, UserUnavailable
from tenancy.principal import Principal
from tests.integration.tenancy.asking import Asking, approve, asked_call
from tests.support.tenancy import ASSISTANT, PATIENCE, TestDatabase, set_user_state

EXPIRE = "SELECT expired, resumed FROM tenant.expire_approvals($1, $2)"


@pytest.fixture
def asking(
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    alice: Principal,
) -> Asking:
    return Asking(tenants, dispatch, superuser, alice)


@dataclass(frozen=True)
class End:
    """How a run that waits comes to its end, and what is kept of what it asked."""

    come: Callable[[Asking, UUID], Awaitable[object]]
    why: str
    keeps_rows: bool = True


async def _write_on(asking: Asking, run_id: UUID) -> None:
    await create_run(
        asking.tenants,
        asking.person,
        thread_id=asking.threads[run_id],
        assistant_id=ASSISTANT,
        graph_id="agent",
        request=RunRequest(),
    )


async def _cancel(asking: Asking, run_id: UUID) -> None:
    await cancel_runs(asking.tenants, asking.person, run_ids=[run_id])


async def _roll_back(asking: Asking, run_id: UUID) -> None:
    await cancel_runs(asking.tenants, asking.person, run_ids=[run_id], action="rollback")


async def _delete_run(asking: Asking, run_id: UUID) -> None:
    async with asking.tenants.writing(asking.person) as tx:
        await delete_run(tx, asking.threads[run_id], run_id)


async def _delete_thread(asking: Asking, run_id: UUID) -> None:
    async with asking.tenants.writing(asking.person) as tx:
        await delete_thread(tx, asking.threads[run_id])


async def _delete_large_thread(asking: Asking, run_id: UUID) -> None:
    thread_id = asking.threads[run_id]
    async with asking.tenants.writing(asking.person) as tx:
        await delete_thread(tx, thread_id, large=0)
    while not (
        await asking.tenants.call(
            *(asking.person, "SELECT done FROM tenant.delete_thread_rows($1, $2, $3)", thread_id, 1)
        )
    )[0][0]:
        pass


ENDS = {
    "a new message": End(_write_on, "interrupt"),
    "a cancel": End(_cancel, "interrupt"),
    "a rollback": End(_roll_back, "rollback"),
    "its deletion": End(_delete_run, "deleted", keeps_rows=False),
    "its thread's": End(_delete_thread, "deleted", keeps_rows=False),
    "a large thread's": End(_delete_large_thread, "interrupt", keeps_rows=False),
}


class TestWhatWasAsked:
    @pytest.mark.parametrize("how", ENDS)
    async def test_is_taken_back_with_the_run_and_stays_on_record(
        self, asking: Asking, how: str
    ) -> None:
        run_id = await asking.waiting(asked_call(1), asked_call(2), asked_call(3))
        first, second, third = await asking.approvals(run_id)
        await asking.decide(run_id, approve(first))
        await ENDS[how].come(asking, run_id)
        if ENDS[how].keeps_rows:
            states = [each.state for each in await asking.approvals(run_id)]
            assert states == ["decided", "superseded", "superseded"]
            with pytest.raises(ApprovalClosed) as refused:
                await asking.decide(run_id, approve(second))
            assert refused.value.approval.state == "superseded"
        else:
            assert await asking.superuser.fetchval("SELECT count(*) FROM approvals") == 0
            with pytest.raises(ApprovalNotFound):
                await asking.decide(run_id, approve(second))
        on_record = await asking.audit("action", "why", "approval_id")
        assert ("decided", None, first.approval_id) in on_record
        taken_back = [entry for entry in on_record if entry[0] == "superseded"]
        assert sorted(taken_back, key=str) == sorted(
            [("superseded", ENDS[how].why, each.approval_id) for each in (second, third)], key=str
        )

    async def test_of_a_thread_that_is_being_deleted_is_seen_no_more(self, asking: Asking) -> None:
        run_id = await asking.waiting()
        async with asking.tenants.writing(asking.person) as tx:
            await delete_thread(tx, asking.threads[run_id], large=0)
        assert await asking.approvals(run_id) == []
        async with asking.tenants.reading(asking.person) as tx:
            assert await count_approvals(tx, ApprovalFilter()) == 0

    @pytest.mark.parametrize("state", ["suspended", "erasing"])
    async def test_of_somebody_for_whom_nothing_is_written_stays_as_it_is(
        self, asking: Asking, dispatch: DispatchDatabase, state: str
    ) -> None:
        run_id = await asking.waiting()
        asked = await asking.approval(run_id)
        await asking.pass_time()
        await set_user_state(asking.superuser, asking.person.user_id, state)
        with pytest.raises(UserUnavailable):
            await asking.decide(run_id, approve(asked))
        with pytest.raises(UserUnavailable):
            await asking.tenants.call(asking.person, EXPIRE, run_id)
        assert await dispatch.find_expired_approvals(10) == []
        assert await asking.state(run_id) == "waiting"
        assert await asking.audit() == [("asked",)]

    async def test_goes_with_its_persons_rows_children_first(
        self, asking: Asking, bob: Principal
    ) -> None:
        """As an erasure would delete them. What is on record refers to them by an id alone."""
        await asking.waiting()
        theirs = replace(asking, person=bob)
        kept = await theirs.approval(await theirs.waiting())
        user_id = asking.person.user_id
        for table in ("run_events", "approvals", "runs", "threads"):
            await asking.superuser.execute(f"DELETE FROM {table} WHERE user_id = $1", user_id)
        left = await asking.superuser.fetch("SELECT approval_id FROM approvals")
        assert [row["approval_id"] for row in left] == [kept.approval_id]
        assert await asking.audit("action") == [("asked",)]


class TestWhatNobodyDecidesInTime:
    async def test_is_closed_and_the_run_goes_on_with_that(self, asking: Asking) -> None:
        run_id = await asking.waiting(asked_call(1), asked_call(2))
        first, _ = await asking.approvals(run_id)
        await asking.decide(run_id, approve(first))
        await asking.pass_time()
        (row,) = await asking.tenants.call(asking.person, EXPIRE, run_id)
        assert tuple(row) == (1, True)
        assert [each["state"] for each in await asking.given()] == ["decided", "expired"]
        assert await asking.audit() == [("asked",), ("asked",), ("decided",), ("expired",)]

    async def test_leaves_open_what_still_has_time(self, asking: Asking) -> None:
        run_id = await asking.waiting(asked_call(1), asked_call(2))
        await asking.superuser.execute(
            "UPDATE approvals SET expires_at = now() WHERE tool_call_id = 'call-1'"
        )
        (row,) = await asking.tenants.call(asking.person, EXPIRE, run_id)
        assert tuple(row) == (1, False)
        assert [each.state for each in await asking.approvals(run_id)] == ["expired", "open"]
        assert await asking.state(run_id) == "waiting"
        _, second = await asking.approvals(run_id)
        assert (await asking.decide(run_id, Decision(second.approval_id, "reject"))).resumed

    async def test_is_closed_once_where_two_workers_look_at_once(self, asking: Asking) -> None:
        runs = [asked.run_id for (asked,) in await asking.many_waiting(10, asked_call())]
        await asking.pass_time()
        overdue = await asking.dispatch.find_expired_approvals(100)
        assert {run.run_id for run in overdue} == set(runs)
        answers = await asyncio.gather(
            *(asking.tenants.call(run, EXPIRE, run.run_id) for run in [*overdue, *overdue])
        )
        assert sorted(tuple(row) for (row,) in answers) == [(0, False)] * 10 + [(1, True)] * 10
        assert await asking.dispatch.find_expired_approvals(100) == []
        assert len(await asking.claim_all()) == len(runs)

    async def test_is_found_the_longest_overdue_first(self, asking: Asking) -> None:
        runs = [await asking.waiting() for _ in range(3)]
        await asking.pass_time()
        await asking.superuser.execute(
            "UPDATE approvals SET expires_at = expires_at - interval '1 day' WHERE run_id = $1",
            runs[2],
        )
        (longest,) = await asking.dispatch.find_expired_approvals(1)
        assert longest.run_id == runs[2]


class TestAWorker:
    @pytest.fixture
    async def announcer(self, database: TestDatabase) -> AsyncIterator[Announcer]:
        announcer = Announcer(database.dsn("service"))
        await announcer.start()
        yield announcer
        await announcer.stop()

    async def test_closes_what_is_overdue_of_everybody_and_says_so(
        self,
        asking: Asking,
        bob: Principal,
        database: TestDatabase,
        announcer: Announcer,
    ) -> None:
        theirs = replace(asking, person=bob)
        waiting = {
            f"{each.person.user_id}/{await each.waiting()}": each for each in (asking, theirs)
        }
        await asking.pass_time()
        heard: set[str] = set()
        all_heard = asyncio.Event()

        def hear(payload: str | None) -> None:
            heard.update((payload or "").split(","))
            if heard >= waiting.keys():
                all_heard.set()

        listener = Listener(database.dsn("service"), {APPROVAL_CHANGED: hear})
        await listener.start()
        duties = [
            ApprovalExpiry(asking.dispatch, asking.tenants, announcer, every_seconds=0.01)
            for _ in range(2)
        ]
        try:
            for duty in duties:
                await duty.start()
            async with asyncio.timeout(PATIENCE):
                await all_heard.wait()
        finally:
            for duty in duties:
                await duty.stop()
            await listener.stop()
        for key, each in waiting.items():
            assert await each.state(UUID(key.partition("/")[2])) == "pending"
            assert await each.audit("actor", "action") == [
                ("service", "asked"),
                ("service", "expired"),
            ]
