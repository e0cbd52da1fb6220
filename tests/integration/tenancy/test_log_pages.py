"""A reader holds a page of a log, not the log."""

from __future__ import annotations

import pytest

from app.runs.events import READ_BYTES, READ_LIMIT, Event, LogPage, append_events, read_log
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tests.support.tenancy import claimed_run, make_thread


@pytest.fixture
async def run(tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal) -> ClaimedRun:
    return await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))


async def every_page(tenants: TenantDatabase, alice: Principal, run: ClaimedRun) -> list[LogPage]:
    pages: list[LogPage] = []
    after = 0
    while not pages or pages[-1].more:
        page = await read_log(tenants, alice, run.run_id, after)
        assert page is not None
        pages.append(page)
        after = page.events[-1].seq
    return pages


class TestALongLog:
    async def test_is_read_in_pages_without_a_gap(
        self, tenants: TenantDatabase, alice: Principal, run: ClaimedRun
    ) -> None:
        events = [Event("values", b"%d" % number) for number in range(2 * READ_LIMIT + 50)]
        await append_events(tenants, run, 1, events)
        pages = await every_page(tenants, alice, run)
        assert [len(page.events) for page in pages] == [READ_LIMIT, READ_LIMIT, 50]
        assert [e.data for page in pages for e in page.events] == [e.data for e in events]

    async def test_of_large_events_is_bounded_in_bytes(
        self, tenants: TenantDatabase, alice: Principal, run: ClaimedRun
    ) -> None:
        third = b"x" * (READ_BYTES // 3)
        await append_events(tenants, run, 1, [Event("values", third)] * 10)
        pages = await every_page(tenants, alice, run)
        assert sum(len(page.events) for page in pages) == 10
        assert max(sum(len(e.data) for e in page.events) for page in pages) <= 4 * len(third)

    async def test_gives_an_event_beyond_the_bound_alone(
        self, tenants: TenantDatabase, alice: Principal, run: ClaimedRun
    ) -> None:
        await append_events(tenants, run, 1, [Event("values", b"x" * (2 * READ_BYTES))] * 2)
        pages = await every_page(tenants, alice, run)
        assert [len(page.events) for page in pages] == [1, 1]

    async def test_of_nothing_new_has_no_more(
        self, tenants: TenantDatabase, alice: Principal, run: ClaimedRun
    ) -> None:
        page = await read_log(tenants, alice, run.run_id, 0)
        assert page is not None
        assert (page.events, page.more) == ((), False)
