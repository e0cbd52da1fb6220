"""What a run streamed and the database did not take at once is stored with its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest

from app.runs.events import Event, append_events, read_log
from app.worker import writer
from app.worker.handover import EventsFlooded, Handover
from app.worker.outcome import SUCCEEDED
from app.worker.parts import Part
from app.worker.writer import EventWriter
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.signals import Announcer
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import RunState
from tests.support.tenancy import TestDatabase, claimed_run, make_thread

PATIENCE = 30.0


class FlushFailed(Exception):
    """A flush could not be stored, or nobody knows whether it was."""


@pytest.fixture
async def run(tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal) -> ClaimedRun:
    return await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))


@pytest.fixture
async def announcer(database: TestDatabase) -> AsyncIterator[Announcer]:
    announcer = Announcer(database.dsn("service"))
    await announcer.start()
    yield announcer
    await announcer.stop()


@pytest.mark.parametrize("committed", [False, True])
async def test_a_flush_that_failed_is_stored_with_the_outcome_and_once(
    committed: bool,
    tenants: TenantDatabase,
    announcer: Announcer,
    run: ClaimedRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def append(
        database: TenantDatabase, run: ClaimedRun, first: int, events: Sequence[Event]
    ) -> None:
        if committed:
            await append_events(database, run, first, events)
        raise FlushFailed

    monkeypatch.setattr(writer, "append_events", append)
    failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    events = EventWriter(tenants, announcer, run, 1, ["custom"], failed.set_result)
    events.emit(Event("custom", b"1"))
    events.emit(Event("custom", b"2"))
    assert isinstance(await failed, FlushFailed)
    events.emit(Event("custom", b"3"))
    await events.settle(SUCCEEDED)

    page = await read_log(tenants, run, run.run_id, 0)
    assert page is not None
    assert page.state == RunState.SUCCESS
    assert [(event.seq, event.data) for event in page.events] == [(1, b"1"), (2, b"2"), (3, b"3")]


async def test_a_graph_waits_where_it_emits_more_than_is_stored(
    tenants: TenantDatabase,
    announcer: Announcer,
    run: ClaimedRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on = asyncio.Event()

    async def append(*flush: Any) -> None:
        await go_on.wait()
        await append_events(*flush)

    monkeypatch.setattr(writer, "append_events", append)
    monkeypatch.setattr(writer, "MOST_PENDING_BYTES", 1_000_000)
    failures: list[BaseException] = []
    events = EventWriter(tenants, announcer, run, 1, ["custom"], failures.append)
    emitted = 0

    async def graph() -> None:
        nonlocal emitted
        for _ in range(20):
            await events.emit_part(((), "custom", "a" * 100_000))
            emitted += 1

    emitting = asyncio.create_task(graph())
    async with asyncio.timeout(PATIENCE):
        while emitted < 9:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    await asyncio.wait([emitting], timeout=0.5)
    assert emitted == 9, "what is being stored counts as well"
    go_on.set()
    async with asyncio.timeout(PATIENCE):
        await emitting
    await events.settle(SUCCEEDED)

    page = await read_log(tenants, run, run.run_id, 19)
    assert page is not None
    assert [event.seq for event in page.events] == [20]
    assert not failures


@pytest.mark.parametrize("most_pending", [1, 1000])
async def test_what_a_graph_emitted_stays_as_it_was_whether_or_not_the_graph_waits(
    most_pending: int,
    tenants: TenantDatabase,
    announcer: Announcer,
    run: ClaimedRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer, "MOST_PENDING", most_pending)
    failures: list[BaseException] = []
    events = EventWriter(tenants, announcer, run, 1, ["custom", "updates"], failures.append)
    payload: dict[str, list[int]] = {"steps": []}
    for step in range(4):
        for mode in ("custom", "updates"):
            payload["steps"] = [step]
            emitting = asyncio.create_task(events.emit_part(((), mode, payload)))
            await asyncio.sleep(0)  # it has begun, and waits where too much is pending
            payload["steps"].append(-1)
            await emitting
    await events.settle(SUCCEEDED)

    assert not failures
    page = await read_log(tenants, run, run.run_id, 0)
    assert page is not None
    assert [event.data for event in page.events] == [
        b'{"steps":[%d]}' % step for step in range(4) for _ in range(2)
    ]


class Held:
    """Holds up a run's flushes until they may go on, or fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.under_way = asyncio.Event()
        self.go_on = asyncio.Event()
        self.fails = False
        monkeypatch.setattr(writer, "append_events", self._append)

    async def _append(self, *flush: Any) -> None:
        self.under_way.set()
        await self.go_on.wait()
        if self.fails:
            raise FlushFailed
        await append_events(*flush)


def part(number: int) -> Part:
    return ((), "custom", number)


class TestWhatIsEmittedWithoutWaiting:
    async def test_says_when_too_much_is_pending_and_is_kept(
        self,
        tenants: TenantDatabase,
        announcer: Announcer,
        run: ClaimedRun,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(writer, "MOST_PENDING", 2)
        events = EventWriter(tenants, announcer, run, 1, ["custom"], lambda _: None)
        assert [events.offer_part(part(number)) for number in range(5)] == [
            *(True, True, False, False, False)
        ]
        await events.settle(SUCCEEDED)
        page = await read_log(tenants, run, run.run_id, 0)
        assert page is not None
        assert [event.data for event in page.events] == [b"0", b"1", b"2", b"3", b"4"]

    async def test_is_refused_far_beyond_that_and_the_run_ends_once(
        self,
        tenants: TenantDatabase,
        announcer: Announcer,
        run: ClaimedRun,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(writer, "MOST_PENDING", 2)
        failures: list[BaseException] = []
        events = EventWriter(tenants, announcer, run, 1, ["custom"], failures.append)
        for number in range(21):
            events.offer_part(part(number))
        for _ in range(3):
            with pytest.raises(EventsFlooded):
                events.offer_part(part(0))
        assert [type(each) for each in failures] == [EventsFlooded]
        await events.settle(SUCCEEDED)
        page = await read_log(tenants, run, run.run_id, 0)
        assert page is not None
        assert [int(event.data) for event in page.events] == list(range(21))

    async def test_is_nobodys_once_the_run_is_over(
        self, tenants: TenantDatabase, announcer: Announcer, run: ClaimedRun
    ) -> None:
        events = EventWriter(tenants, announcer, run, 1, ["custom"], lambda _: None)
        await events.settle(SUCCEEDED)
        assert not events.offer_part(part(1))
        page = await read_log(tenants, run, run.run_id, 0)
        assert page is not None
        assert page.events == ()


@pytest.mark.parametrize("fails", [False, True], ids=["once it is stored", "though it fails"])
async def test_closing_lets_go_of_who_waits_on_the_loop_and_in_a_thread(
    fails: bool,
    tenants: TenantDatabase,
    announcer: Announcer,
    run: ClaimedRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer, "MOST_PENDING", 1)
    held = Held(monkeypatch)
    held.fails = fails
    failures: list[BaseException] = []
    events = EventWriter(tenants, announcer, run, 1, ["custom"], failures.append)
    taking = Handover(lambda each: cast("None", events.offer_part(each)), events)
    events.offer_part(part(0))
    await held.under_way.wait()
    events.offer_part(part(1))
    waiting = [
        asyncio.create_task(events.emit_part(part(2))),
        asyncio.create_task(asyncio.to_thread(taking.put, part(3), 1)),
    ]
    await asyncio.wait(waiting, timeout=0.2)
    assert not any(each.done() for each in waiting)
    stopping = asyncio.create_task(events.stop())
    held.go_on.set()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(stopping, *waiting)
    assert [type(each) for each in failures] == ([FlushFailed] if fails else [])
