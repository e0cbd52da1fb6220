"""What a log has no more is told by a gap; what it has is told once, however late it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from app.runs import tail as tails
from app.runs.events import Event, LogPage, append_events, read_log, settle_run
from app.runs.tail import RunTail, run_key
from app.worker.retention import Retention
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.signals import Announcer
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Owner, Principal
from tenancy.run_states import RunState
from tests.support.frames import Frame, new_thread, read_run, start_run
from tests.support.model_server import Script
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service
from tests.support.tenancy import TestDatabase, claimed_run, make_thread

PATIENCE = 30.0
MODES = ("values", "messages-tuple", "messages", "updates")


def is_delta(frame: Frame) -> bool:
    return frame.event == "messages" or frame.event.startswith("messages/partial")


@pytest.fixture(scope="module")
async def service(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    async with running_service(postgres) as running:
        yield running


@pytest.fixture(scope="module")
async def pruned(service: RunningService) -> tuple[str, list[Frame]]:
    """A run that was pruned, and what its stream was before."""
    client = service.client("pruned")
    service.model.enqueue(Script(text="one two three", decode_tokens_per_second=100))
    location = await start_run(client, await new_thread(client), modes=MODES)
    whole = await read_run(client, location)
    # By these settings the service might drop them before they are read.
    at_once = service.settings.model_copy(update={"delta_retention_seconds": 0})
    retention = Retention(at_once, service.web.services.database, 0.01)
    await retention.start()
    try:
        async with asyncio.timeout(PATIENCE):
            while any(map(is_delta, await read_run(client, location))):
                pass
    finally:
        await retention.stop()
    return location, whole


class TestALogWhoseDeltasRetentionHasDropped:
    @pytest.mark.parametrize("after", [None, "-1", "1"])
    async def test_begins_with_a_gap_and_the_present_state(
        self, service: RunningService, pruned: tuple[str, list[Frame]], after: str | None
    ) -> None:
        location, whole = pruned
        client = service.client("pruned")
        gap, state, *rest = await read_run(client, location, after)
        place = max(int(after or 0), 0)
        last_delta = max(frame.id or 0 for frame in whole if is_delta(frame))
        assert gap.event == "gap"
        assert gap.data == {
            "asked_after": place,
            "continues_after": place,
            "pruned_through": last_delta,
        }
        thread = (await client.get(f"{location.partition('/runs/')[0]}/state")).json()
        assert (state.event, state.id, state.data) == ("values", None, thread["values"])
        assert rest == [frame for frame in whole[place:] if not is_delta(frame)]

    async def test_has_no_gap_behind_the_last_of_them(
        self, service: RunningService, pruned: tuple[str, list[Frame]]
    ) -> None:
        location, whole = pruned
        last_delta = max(frame.id or 0 for frame in whole if is_delta(frame))
        frames = await read_run(service.client("pruned"), location, last_delta)
        assert frames == whole[last_delta:]

    async def test_has_no_gap_for_whoever_wants_no_deltas(
        self, service: RunningService, pruned: tuple[str, list[Frame]]
    ) -> None:
        location, _ = pruned
        answer = await service.client("pruned").get(f"{location}/stream?stream_mode=values")
        assert "event: gap" not in answer.text


class TestBetweenReplayAndSubscription:
    @pytest.fixture
    async def announcer(self, database: TestDatabase) -> AsyncIterator[Announcer]:
        announcer = Announcer(database.dsn("service"))
        await announcer.start()
        yield announcer
        await announcer.stop()

    @pytest.fixture
    async def tail(self, database: TestDatabase, tenants: TenantDatabase) -> AsyncIterator[RunTail]:
        tail = RunTail(tenants, database.dsn("service"))
        await tail.start()
        yield tail
        await tail.stop()

    async def test_nothing_is_lost_and_nothing_comes_twice(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        alice: Principal,
        announcer: Announcer,
        tail: RunTail,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await append_events(tenants, run, 1, [Event("custom", b"1")])
        steps = 5

        async def read_then_append(
            database: TenantDatabase, owner: Owner, run_id: UUID, after: int
        ) -> LogPage | None:
            """After each look, and before its result is known, the worker writes on."""
            page = await read_log(database, owner, run_id, after)
            number = (page.events[-1].seq if page and page.events else after) + 1
            with tail.subscribed(run_key(run.user_id, run.run_id)) as heard:
                if number <= steps:
                    await append_events(tenants, run, number, [Event("custom", b"%d" % number)])
                elif page is not None and page.state is RunState.RUNNING:
                    await settle_run(tenants, run, RunState.SUCCESS, number, [])
                else:
                    return page
                announcer.run_changed(run_key(run.user_id, run.run_id))
                await heard.wait()
            return page

        monkeypatch.setattr(tails, "read_log", read_then_append)
        monkeypatch.setattr(tails, "POLL_SECONDS", 10 * PATIENCE)
        async with asyncio.timeout(PATIENCE):
            pages = [page async for page in tail.follow(alice, run.run_id)]
        read = [(event.seq, event.data) for page in pages for event in page.events]
        assert read == [(number, b"%d" % number) for number in range(1, steps + 1)]
        assert pages[-1].state is RunState.SUCCESS
