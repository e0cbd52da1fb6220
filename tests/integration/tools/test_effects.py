"""The ledger: what may change the world is on record before it is done, and is done once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.tools.effects import Entry, Found, IntendedCall
from app.tools.ledger import Ledger
from app.tools.servers import HttpTransport, McpServer, Trust
from app.tools.site import CallSite
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import LeaseLost
from tenancy.principal import ClaimedRun, Principal
from tests.support.tenancy import claimed_run, make_thread

TakeOver = Callable[[], Awaitable[Ledger]]

SITE = CallSite("message", "call")
NOTES = McpServer("notes", HttpTransport("https://notes.test/mcp"))
OWN = replace(NOTES, is_own=True)
CALL = IntendedCall(NOTES, "write", {"text": "a"}, 1)
RESULT = {"content": "written", "outcome": "ok"}
REPEATABLE = replace(
    NOTES, trust=Trust(idempotent=frozenset({"write"}), idempotency_ttl_seconds=60)
)
LOOKING = replace(NOTES, trust=Trust(read_only=frozenset({"write"})))


@pytest.fixture
async def thread(tenants: TenantDatabase, alice: Principal) -> UUID:
    return await make_thread(tenants, alice)


@pytest.fixture
async def run(
    tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal, thread: UUID
) -> ClaimedRun:
    return await claimed_run(tenants, dispatch, alice, thread)


@pytest.fixture
async def ledger(tenants: TenantDatabase, run: ClaimedRun, thread: UUID) -> Ledger:
    return Ledger(tenants, run, thread)


@pytest.fixture
def take_over(
    tenants: TenantDatabase, superuser: asyncpg.Connection, run: ClaimedRun, thread: UUID
) -> TakeOver:
    """Let another attempt go on with the run; its ledger."""

    async def taken_over() -> Ledger:
        await superuser.execute("UPDATE runs SET fence = fence + 1")
        return Ledger(tenants, replace(run, fence=run.fence + 1), thread)

    return taken_over


async def connect(superuser: asyncpg.Connection, owner: Principal, **columns: Any) -> None:
    values = {"user_id": owner.user_id, "server": "notes", **columns}
    names, places = ", ".join(values), ", ".join(f"${n + 1}" for n in range(len(values)))
    await superuser.execute(
        f"INSERT INTO connections ({names}) VALUES ({places})", *values.values()
    )


class TestACall:
    async def test_is_begun_under_a_key_of_its_own(self, ledger: Ledger) -> None:
        first = await ledger.begin(SITE, CALL)
        second = await ledger.begin(CallSite("message", "other"), CALL)
        assert (first.found, second.found) == (Found.BEGUN, Found.BEGUN)
        assert None not in (first.key, second.key)
        assert first.key != second.key

    async def test_that_only_reads_leaves_nothing(
        self, ledger: Ledger, superuser: asyncpg.Connection
    ) -> None:
        for _ in range(2):
            entry = await ledger.begin(SITE, replace(CALL, server=LOOKING))
            assert entry == Entry(Found.BEGUN)
        assert await superuser.fetchval("SELECT count(*) FROM effects") == 0

    async def test_of_somebody_elses_run_is_nobodys(
        self, tenants: TenantDatabase, run: ClaimedRun, thread: UUID, bob: Principal
    ) -> None:
        with pytest.raises(LeaseLost):
            await Ledger(tenants, replace(run, user_id=bob.user_id), thread).begin(SITE, CALL)

    async def test_on_another_thread_is_refused(
        self, tenants: TenantDatabase, run: ClaimedRun, alice: Principal
    ) -> None:
        other = await make_thread(tenants, alice)
        with pytest.raises(LeaseLost):
            await Ledger(tenants, run, other).begin(SITE, CALL)


class TestAReplay:
    @pytest.mark.parametrize("ending", ["done", "failed"])
    async def test_finds_what_came_of_the_call(
        self, ledger: Ledger, take_over: TakeOver, ending: Any
    ) -> None:
        begun = await ledger.begin(SITE, CALL)
        assert begun.key is not None
        await ledger.end(SITE, begun.key, ending, RESULT)
        later = await take_over()
        assert await later.begin(SITE, CALL) == Entry(Found(ending), None, RESULT)
        earlier = await later.find(SITE, CALL.arguments)
        assert earlier is not None
        assert (earlier.is_same, earlier.result) == (True, RESULT)

    async def test_finds_it_though_the_connection_is_another_now(
        self, ledger: Ledger, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        begun = await ledger.begin(SITE, CALL)
        assert begun.key is not None
        await ledger.end(SITE, begun.key, "done", RESULT)
        await connect(superuser, alice, version=2, enabled=False)
        assert (await ledger.begin(SITE, CALL)).result == RESULT

    async def test_of_a_call_without_an_outcome_is_in_doubt(
        self, ledger: Ledger, take_over: TakeOver
    ) -> None:
        await ledger.begin(SITE, CALL)
        assert await (await take_over()).begin(SITE, CALL) == Entry(Found.IN_DOUBT)

    async def test_of_one_that_may_be_repeated_goes_on_under_the_same_key(
        self, ledger: Ledger, take_over: TakeOver
    ) -> None:
        call = replace(CALL, server=REPEATABLE)
        begun = await ledger.begin(SITE, call)
        assert await (await take_over()).begin(SITE, call) == begun

    async def test_of_one_whose_key_is_forgotten_by_now_is_in_doubt(
        self, ledger: Ledger, superuser: asyncpg.Connection
    ) -> None:
        call = replace(CALL, server=REPEATABLE)
        await ledger.begin(SITE, call)
        await superuser.execute("UPDATE effects SET started_at = now() - interval '61 seconds'")
        assert (await ledger.begin(SITE, call)).found is Found.IN_DOUBT

    async def test_of_one_that_stopped_at_a_question_goes_on_under_the_same_key(
        self, ledger: Ledger
    ) -> None:
        begun = await ledger.begin(SITE, CALL)
        assert begun.key is not None
        await ledger.end(SITE, begun.key, "asking")
        assert await ledger.begin(SITE, CALL) == begun
        assert (await ledger.begin(SITE, CALL)).found is Found.IN_DOUBT

    @pytest.mark.parametrize(
        "other",
        [
            replace(CALL, arguments={"text": "b"}),
            replace(CALL, tool="erase"),
            replace(CALL, server=replace(NOTES, name="mail")),
        ],
        ids=["arguments", "tool", "server"],
    )
    async def test_with_something_else_in_its_place_is_refused(
        self, ledger: Ledger, other: IntendedCall
    ) -> None:
        await ledger.begin(SITE, CALL)
        assert (await ledger.begin(SITE, other)).found is Found.OTHER


class TestWhoeverLostTheRun:
    async def test_begins_nothing_and_records_nothing(
        self, ledger: Ledger, superuser: asyncpg.Connection
    ) -> None:
        begun = await ledger.begin(SITE, CALL)
        assert begun.key is not None
        await superuser.execute("UPDATE runs SET fence = fence + 1")
        with pytest.raises(LeaseLost):
            await ledger.end(SITE, begun.key, "done", RESULT)
        with pytest.raises(LeaseLost):
            await ledger.begin(CallSite("message", "next"), CALL)
        assert await superuser.fetchval("SELECT state FROM effects") == "started"


class TestTheConnection:
    @pytest.mark.parametrize(
        ("row", "call", "found"),
        [
            (None, CALL, Found.BEGUN),
            (None, replace(CALL, version=2), Found.STALE),
            (None, replace(CALL, server=OWN), Found.DISCONNECTED),
            ({"version": 2}, CALL, Found.STALE),
            ({"version": 2}, replace(CALL, version=2), Found.BEGUN),
            ({"version": 2}, replace(CALL, version=None), Found.BEGUN),
            ({"enabled": False}, CALL, Found.DISCONNECTED),
            ({"enabled": False}, replace(CALL, version=None), Found.DISCONNECTED),
            ({"url": "https://notes.test/mcp"}, replace(CALL, server=OWN), Found.BEGUN),
            ({"url": "https://other.test/mcp"}, replace(CALL, server=OWN), Found.DISCONNECTED),
        ],
        ids=[
            *("as it comes", "never changed, but known otherwise", "own, and gone"),
            *("changed since", "the newest", "shared by all"),
            *("switched off", "shared by all and switched off", "own", "own, made again elsewhere"),
        ],
    )
    async def test_must_still_be_the_one_that_the_call_would_use(
        self,
        ledger: Ledger,
        superuser: asyncpg.Connection,
        alice: Principal,
        row: dict[str, Any] | None,
        call: IntendedCall,
        found: Found,
    ) -> None:
        if row is not None:
            await connect(superuser, alice, **({"auth": "none"} if "url" in row else {}), **row)
        for server in (call.server, replace(call.server, trust=LOOKING.trust)):
            assert (await ledger.begin(SITE, replace(call, server=server))).found is found
        begun = await superuser.fetchval("SELECT count(*) FROM effects")
        assert begun == (found is Found.BEGUN)

    async def test_is_waited_for_while_it_is_being_revoked(
        self, ledger: Ledger, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        await connect(superuser, alice)
        async with superuser.transaction():
            await superuser.execute("UPDATE connections SET version = 2")
            beginning = asyncio.create_task(ledger.begin(SITE, CALL))
            while not await superuser.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0"
            ):
                assert not beginning.done()
        assert (await beginning).found is Found.STALE
