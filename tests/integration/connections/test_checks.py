"""Workers look at the servers that people want to use: each once, as that person, whoever dies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from app.connections.own import OwnServer
from app.connections.rows import ConnectionRow
from app.connections.standing import UserServer, standing_of
from app.tools.entries import versioned
from app.tools.pool.pool import ToolPool
from app.tools.servers import (
    Credential,
    CredentialKind,
    CredentialRule,
    HttpTransport,
    McpServer,
    Scope,
)
from app.worker import check_connections
from app.worker.check_connections import ConnectionChecker
from app.worker.revoked import RevokedConnections
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.signals import CONNECTION_CHANGED, CONNECTION_REVOKED
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tests.integration.connections.process import Process, running_process
from tests.support.tenancy import TestDatabase, set_user_state, sign_in
from tests.support.tool_servers.http import HttpToolServer, http_tool_server
from tests.support.tool_servers.pools import running_pool

PATIENCE = 60
TOOLS = {"add", "hang", "greet", "send_away", "large", "grow", "publish"}


class Worker:
    """A process with a pool of connections, and what it does for people's."""

    def __init__(self, process: Process, pool: ToolPool, dispatch: DispatchDatabase) -> None:
        self.process = process
        self.pool = pool
        self.checker = ConnectionChecker(
            dispatch, process.connections, process.credentials, pool, process.announcer
        )
        self.revoked = RevokedConnections(process.known, pool)

    def hear_of_what_was_revoked(self, process: Process) -> None:
        """What a web process announces, as it comes here."""
        self.revoked.hear(",".join(process.announcer.said(CONNECTION_REVOKED)) or None)


@asynccontextmanager
async def running_worker(
    database: TestDatabase, folder: Path, *servers: McpServer, checks: bool = True
) -> AsyncIterator[Worker]:
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(running_process(database, *servers))
        pool = await stack.enter_async_context(running_pool(folder))
        dispatch = DispatchDatabase(database.settings("dispatch"))
        stack.push_async_callback(dispatch.close)
        worker = Worker(process, pool, dispatch)
        if checks:
            await worker.checker.start()
            stack.push_async_callback(worker.checker.stop)
        yield worker


@pytest.fixture(scope="module")
async def far() -> AsyncIterator[HttpToolServer]:
    async with http_tool_server() as running:
        yield running


@pytest.fixture
def tickets(far: HttpToolServer) -> McpServer:
    """A server that knows people by their keys."""
    far.status = None
    far.requests.clear()
    rule = CredentialRule(CredentialKind.HEADER, "X-Key", "{key}")
    return versioned(McpServer("tickets", HttpTransport(far.url), credential=rule))


@pytest.fixture
def shared(far: HttpToolServer) -> McpServer:
    return versioned(McpServer("shared", HttpTransport(far.url), scope=Scope.SHARED))


@asynccontextmanager
async def looked_after(
    database: TestDatabase, folder: Path, *servers: McpServer
) -> AsyncIterator[tuple[Process, Worker]]:
    """A process that people speak to, and a worker that looks at what they want."""
    async with (
        running_process(database, *servers) as web,
        running_worker(database, folder, *servers) as worker,
    ):
        yield web, worker


async def standing(process: Process, person: Principal, server: McpServer) -> UserServer:
    """How it stands once nobody looks at it any more."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await process.connections.find(person, server.name)
            if found.state != "checking":
                return found
            await asyncio.sleep(0.02)


class TestACheck:
    async def test_lists_the_tools_with_the_persons_own_key(
        self,
        database: TestDatabase,
        tmp_path: Path,
        far: HttpToolServer,
        tickets: McpServer,
        alice: Principal,
        bob: Principal,
    ) -> None:
        async with looked_after(database, tmp_path, tickets) as (web, worker):
            await web.changes.set_key(alice, "tickets", "alices-key")
            await web.changes.set_key(bob, "tickets", "bobs-key")
            worker.checker.hear("")
            for person in (alice, bob):
                found = await standing(web, person, tickets)
                assert (found.state, found.reason) == ("available", None)
                assert {tool.name for tool in found.listing or ()} == TOOLS
            assert set(far.headers("x-key")) == {"alices-key", "bobs-key"}
            said = "".join(worker.process.announcer.said(CONNECTION_CHANGED))
            assert str(alice.user_id) in said
            assert str(bob.user_id) in said

    async def test_is_made_once_by_two_workers(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        tmp_path: Path,
        far: HttpToolServer,
        tickets: McpServer,
    ) -> None:
        people = [await sign_in(tenants, uuid4().hex) for _ in range(6)]
        async with (
            running_process(database, tickets) as web,
            running_worker(database, tmp_path, tickets, checks=False) as one,
            running_worker(database, tmp_path, tickets, checks=False) as other,
        ):
            for n, person in enumerate(people):
                await web.changes.set_key(person, "tickets", f"key-{n}")
            for worker in (one, other):
                await worker.checker.start()
                worker.checker.hear("")
            try:
                for person in people:
                    assert (await standing(web, person, tickets)).state == "available"
            finally:
                await one.checker.stop()
                await other.checker.stop()
            assert one.pool.open_connections + other.pool.open_connections == len(people)
            assert set(far.headers("x-key")) == {f"key-{n}" for n in range(len(people))}

    async def test_is_taken_up_by_another_where_its_worker_died(
        self,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        tickets: McpServer,
        alice: Principal,
    ) -> None:
        monkeypatch.setattr(check_connections, "LOOK_SECONDS", 0.05)
        dead = DispatchDatabase(database.settings("dispatch"))
        async with running_process(database, tickets) as web:
            await web.changes.set_key(alice, "tickets", "key")
            claimed = [each.user_id for each in await dead.claim_checks(10, 3, 3600)]
            assert claimed == [alice.user_id]
            assert await dead.claim_checks(10, 3, 3600) == []
            await dead.close()
            async with running_worker(database, tmp_path, tickets):
                await asyncio.sleep(0.2)
                assert (await web.connections.find(alice, "tickets")).state == "checking"
                await superuser.execute(
                    "UPDATE connections SET checking_until = now() - interval '1s'"
                    " WHERE user_id = $1",
                    alice.user_id,
                )
                assert (await standing(web, alice, tickets)).state == "available"

    @pytest.mark.parametrize(
        ("status", "state", "reason"),
        [
            (401, "needs_key", "needs_key"),
            (403, "unavailable", "refused"),
            (503, "unavailable", "unreachable"),
        ],
    )
    async def test_says_why_there_are_no_tools(
        self,
        database: TestDatabase,
        tmp_path: Path,
        far: HttpToolServer,
        tickets: McpServer,
        alice: Principal,
        status: int,
        state: str,
        reason: str,
    ) -> None:
        far.status = status
        async with looked_after(database, tmp_path, tickets) as (web, worker):
            await web.changes.set_key(alice, "tickets", "key")
            worker.checker.hear("")
            found = await standing(web, alice, tickets)
            assert (found.state, found.reason, found.listing) == (state, reason, None)

    async def test_without_a_key_asks_for_one_and_speaks_to_nobody(
        self,
        database: TestDatabase,
        tmp_path: Path,
        far: HttpToolServer,
        tickets: McpServer,
        alice: Principal,
    ) -> None:
        async with looked_after(database, tmp_path, tickets) as (web, worker):
            await web.changes.connect(alice, "tickets")
            worker.checker.hear("")
            assert (await standing(web, alice, tickets)).state == "needs_key"
            assert far.requests == []

    async def test_by_a_worker_whose_vault_lacks_the_key_says_so(
        self, database: TestDatabase, tmp_path: Path, tickets: McpServer, alice: Principal
    ) -> None:
        async with running_process(database, tickets) as web:
            await web.changes.set_key(alice, "tickets", "key")
            async with (
                running_process(database, tickets, keys=None) as without,
                running_pool(tmp_path) as pool,
            ):
                dispatch = DispatchDatabase(database.settings("dispatch"))
                worker = Worker(without, pool, dispatch)
                await worker.checker.start()
                worker.checker.hear("")
                found = await standing(web, alice, tickets)
                await worker.checker.stop()
                await dispatch.close()
            assert (found.state, found.reason) == ("unavailable", "vault")

    async def test_of_an_own_server_is_not_made_once_the_operator_allows_none(
        self, database: TestDatabase, tmp_path: Path, alice: Principal
    ) -> None:
        own = OwnServer("mine", "https://mcp.stoa-people.org/", "none", None)
        async with running_process(database) as before:
            await before.changes.add(alice, own, None)
        async with (
            running_process(database, own_allowed=False) as strict,
            running_pool(tmp_path) as pool,
        ):
            dispatch = DispatchDatabase(database.settings("dispatch"))
            worker = Worker(strict, pool, dispatch)
            await worker.checker.start()
            worker.checker.hear("")
            async with asyncio.timeout(PATIENCE):
                while await wishes(strict, alice):  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0.02)
            await worker.checker.stop()
            await dispatch.close()
            (found,) = await strict.connections.all(alice)
            assert (found.state, found.reason) == ("unavailable", "own_servers_not_allowed")
            assert await strict.connections.of(alice) == []
            assert pool.open_connections == 0

    async def test_of_a_shared_server_is_everybodys_connection_and_ones_own_listing(
        self,
        database: TestDatabase,
        tmp_path: Path,
        shared: McpServer,
        alice: Principal,
        bob: Principal,
    ) -> None:
        async with looked_after(database, tmp_path, shared) as (web, worker):
            await web.changes.connect(alice, "shared")
            worker.checker.hear("")
            assert (await standing(web, alice, shared)).state == "available"
            assert (await standing(web, bob, shared)).state == "unknown"
            await web.changes.connect(bob, "shared")
            worker.checker.hear("")
            assert (await standing(web, bob, shared)).state == "available"
            assert worker.pool.open_connections == 1


class TestWishes:
    async def test_of_one_person_hold_up_nobody_else(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        alice: Principal,
        bob: Principal,
    ) -> None:
        servers = [McpServer(f"s{n}", HttpTransport("http://s.test")) for n in range(6)]
        dispatch = DispatchDatabase(database.settings("dispatch"))
        async with running_process(database, *servers) as web:
            for server in servers:
                await web.changes.connect(alice, server.name)
            await web.changes.connect(bob, "s0")
            first = [each.user_id for each in await dispatch.claim_checks(10, 3, 60)]
            assert sorted(first) == sorted([alice.user_id] * 3 + [bob.user_id])
            assert await dispatch.claim_checks(10, 3, 60) == []
            for person in (alice, bob):
                for server in servers:
                    await web.changes.disconnect(person, server.name)
        await dispatch.close()

    async def test_of_somebody_suspended_wait(
        self,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        tickets: McpServer,
        alice: Principal,
    ) -> None:
        dispatch = DispatchDatabase(database.settings("dispatch"))
        async with running_process(database, tickets) as web:
            await web.changes.set_key(alice, "tickets", "key")
            await set_user_state(superuser, alice.user_id, "suspended")
            assert await dispatch.claim_checks(10, 3, 60) == []
            await set_user_state(superuser, alice.user_id, "active")
            assert len(await dispatch.claim_checks(10, 3, 60)) == 1
        await dispatch.close()

    async def test_that_come_while_one_is_answered_are_answered_too(
        self, database: TestDatabase, tickets: McpServer, alice: Principal
    ) -> None:
        async with running_process(database, tickets) as web:
            await web.changes.set_key(alice, "tickets", "key")
            row = await wish(web, alice)
            await web.changes.connect(alice, "tickets")
            standing_then = standing_of(tickets, [], "available", None)
            await web.rows.finish_check(alice, row, row.version, standing_then)
            assert (await web.connections.find(alice, "tickets")).state == "checking"
            row = await wish(web, alice)
            await web.rows.finish_check(alice, row, row.version, standing_then)
            assert (await web.connections.find(alice, "tickets")).state == "available"

    async def test_for_what_the_operator_offers_no_more_hold_up_no_others(
        self,
        database: TestDatabase,
        tmp_path: Path,
        tickets: McpServer,
        alice: Principal,
    ) -> None:
        gone = [McpServer(f"gone{n}", HttpTransport("http://s.test")) for n in range(4)]
        async with running_process(database, *gone) as before:
            for server in gone:
                await before.changes.connect(alice, server.name)
        async with looked_after(database, tmp_path, tickets) as (web, worker):
            await web.changes.set_key(alice, "tickets", "key")
            worker.checker.hear("")
            assert (await standing(web, alice, tickets)).state == "available"
            assert await wishes(web, alice) == []


async def wishes(process: Process, person: Principal) -> list[str]:
    """Of which servers somebody still waits to hear."""
    rows = await process.rows.all(person)
    return [row.server for row in rows if row.check_wanted_at is not None]


async def wish(process: Process, person: Principal) -> ConnectionRow:
    """The only connection of somebody's, as it is stored."""
    (row,) = await process.rows.all(person)
    return row


class TestAConnectionThatIsRevoked:
    async def test_is_closed_in_every_worker_and_the_old_key_is_sent_no_more(
        self,
        database: TestDatabase,
        tmp_path: Path,
        far: HttpToolServer,
        tickets: McpServer,
        alice: Principal,
        bob: Principal,
    ) -> None:
        async with (
            running_process(database, tickets) as web,
            running_worker(database, tmp_path, tickets, checks=False) as one,
            running_worker(database, tmp_path, tickets, checks=False) as other,
        ):
            for person in (alice, bob):
                await web.changes.set_key(person, "tickets", f"old-{person.user_id}")
                for worker in (one, other):
                    await use(worker, person, tickets)
            await far.has_listed_all(4)
            web.announcer.forget()
            far.requests.clear()
            await web.changes.set_key(alice, "tickets", "new")
            for worker in (one, other):
                assert worker.pool.open_connections == 2
                worker.hear_of_what_was_revoked(web)
                await until_closed(worker.pool, 1)
                await use(worker, alice, tickets)
            assert set(far.headers("x-key")) == {"new"}

    async def test_is_used_no_more_by_a_worker_that_did_not_hear_of_it(
        self,
        database: TestDatabase,
        tmp_path: Path,
        far: HttpToolServer,
        tickets: McpServer,
        alice: Principal,
    ) -> None:
        async with (
            running_process(database, tickets) as web,
            running_worker(database, tmp_path, tickets, checks=False) as worker,
        ):
            await web.changes.set_key(alice, "tickets", "old")
            await use(worker, alice, tickets)
            await far.has_listed_all(1)
            await web.changes.set_key(alice, "tickets", "new")
            far.requests.clear()
            await use(worker, alice, tickets)
            assert set(far.headers("x-key")) == {"new"}

    async def test_is_let_go_of_by_a_worker_that_was_deaf_for_a_while(
        self, database: TestDatabase, tmp_path: Path, tickets: McpServer, alice: Principal
    ) -> None:
        async with (
            running_process(database, tickets) as web,
            running_worker(database, tmp_path, tickets, checks=False) as worker,
        ):
            await web.changes.set_key(alice, "tickets", "old")
            credential = await worker.process.credentials.current(alice, tickets)
            async with worker.pool.lease(alice.user_id, tickets, credential) as connection:
                await web.changes.disconnect(alice, "tickets")
                worker.revoked.hear(None)
                await connection.call("add", {"a": 1, "b": 2}, meta={}, seconds=PATIENCE)
            await until_closed(worker.pool, 0)


async def use(worker: Worker, person: Principal, server: McpServer) -> None:
    credential: Credential = await worker.process.credentials.current(person, server)
    async with worker.pool.lease(person.user_id, server, credential) as connection:
        await connection.call("add", {"a": 1, "b": 2}, meta={}, seconds=PATIENCE)


async def until_closed(pool: ToolPool, left: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while pool.open_connections > left:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
