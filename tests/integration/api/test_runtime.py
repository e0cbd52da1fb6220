"""Whether the service can work: told to all who are signed in, one's own links to nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from app.api import own_events
from app.api.own_approvals import OwnApprovals
from app.api.own_events import OwnEvents
from app.connections.known import connection_key
from app.connections.rows import Standing, StoredState
from app.runs.changes import HeardChanges
from app.runtime import watch as watching
from app.runtime.watch import RuntimeWatch
from tenancy.principal import UserId
from tests.support.frames import Frame, follow, new_thread, start_run
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service
from tests.support.tenancy import TestDatabase, set_user_state
from tests.support.vaults import keys_of

PATIENCE = 60
OWN = "https://mcp.stoa-people.org/mcp"
MODEL = "model:default"
FAIL = "SELECT dispatch.publish_failure($1, $2, $3, clock_timestamp(), NULL)"
PASS = "SELECT dispatch.publish_available($1, gen_random_uuid())"
CLOSE = "ALTER DATABASE {} CONNECTION LIMIT {}"
CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"
CODES = {"no_workers", "worker_lost", "ollama_unreachable", "model_missing", "model_failing"}

Parts = dict[str, dict[str, Any]]
Stands = Callable[..., Awaitable[None]]


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(own_events, "LOOK_SECONDS", 0.05)


@pytest.fixture(scope="module")
async def service(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    """A service of these tests' own, whose parts stand as they say: there is no worker."""
    async with running_service(
        postgres,
        worker=False,
        mcp_own_servers=True,
        vault_keys=keys_of("k1"),
        requests_per_minute=1_000_000,
    ) as running:
        yield running


@pytest.fixture
async def superuser(service: RunningService) -> AsyncIterator[asyncpg.Connection]:
    connection = await TestDatabase(service.postgres, service.database).connect("owner")
    yield connection
    await connection.close()


@pytest.fixture
async def parts_work(service: RunningService, superuser: asyncpg.Connection) -> None:
    """Everything that is shared is available, and the process has seen it."""
    for part in ("workers", MODEL):
        await superuser.execute(PASS, part)
    await has_looked(service.web.services.runtime)


@pytest.fixture
def alice(service: RunningService) -> httpx.AsyncClient:
    return service.client(f"alice {uuid4()}")


@pytest.fixture
def bob(service: RunningService) -> httpx.AsyncClient:
    return service.client(f"bob {uuid4()}")


@pytest.fixture(autouse=True)
def no_worker_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """How workers stand is what a test says."""
    monkeypatch.setattr("tenancy.scheduler.components._LOOK", "SELECT 1")


@dataclass(frozen=True)
class Whose:
    """Somebody whose rows are meant."""

    user_id: UserId


class Feed:
    """What one reader is told of the parts."""

    def __init__(self, frames: AsyncIterator[Frame]) -> None:
        self.frames = frames
        self.told: list[Parts] = []

    async def next(self) -> Parts:
        """The parts, once they are told again."""
        async with asyncio.timeout(PATIENCE):
            while (frame := await anext(self.frames)).event != "runtime":
                pass
        self.told.append(named(frame.data))
        return self.told[-1]

    async def until(self, part: str, status: str | None) -> Parts:
        """The parts, once one stands like that; None: it is not spoken of."""
        while True:
            parts = await self.next()
            if parts.get(part, {}).get("status") == status:
                return parts


@asynccontextmanager
async def feed(client: httpx.AsyncClient) -> AsyncIterator[Feed]:
    async with client.stream("GET", "/events") as response:
        assert response.status_code == 200
        yield Feed(follow(response))


def named(runtime: dict[str, Any]) -> Parts:
    parts = {each["component"]: each for each in runtime["components"]}
    assert len(parts) == len(runtime["components"])  # one current row each
    return parts


async def runtime_of(client: httpx.AsyncClient) -> Parts:
    answer = await client.get("/runtime")
    assert answer.status_code == 200, answer.text
    return named(answer.json())


async def has_looked(watch: RuntimeWatch) -> None:
    async with asyncio.timeout(PATIENCE):
        await watch.next_look()


@pytest.mark.usefixtures("parts_work")
class TestWhoIsSignedIn:
    async def test_is_told_of_what_all_share_and_of_nothing_else(
        self, alice: httpx.AsyncClient
    ) -> None:
        parts = await runtime_of(alice)
        assert {name: part["status"] for name, part in parts.items()} == {
            **dict.fromkeys(("database", "workers", MODEL), "available")
        }
        for part in parts.values():
            assert part.keys() == {"component", "status", "version"}

    async def test_is_told_the_same_as_the_page_is_opened(self, alice: httpx.AsyncClient) -> None:
        at_boot = named((await alice.get("/me")).json()["runtime"])
        parts = await runtime_of(alice)
        assert parts.pop("database")["version"] >= at_boot.pop("database")["version"]
        assert at_boot == parts

    async def test_is_told_why_by_a_code_and_since_when(
        self, service: RunningService, superuser: asyncpg.Connection, alice: httpx.AsyncClient
    ) -> None:
        await superuser.execute(FAIL, MODEL, "unavailable", "ollama_unreachable")
        await has_looked(service.web.services.runtime)
        told = (await runtime_of(alice))[MODEL]
        assert told.keys() == {"component", "status", "version", "reason", "occurred_at"}
        assert told["reason"] in CODES

    async def test_is_the_only_one_who_is_told(
        self, service: RunningService, superuser: asyncpg.Connection
    ) -> None:
        await superuser.execute(FAIL, "workers", "unavailable", "no_workers")
        await has_looked(service.web.services.runtime)
        stranger = service.client(None)
        for path in ("/runtime", "/me", "/events"):
            answer = await stranger.get(path)
            assert answer.status_code == 401
            assert "no_workers" not in answer.text
        assert (await stranger.get("/ok")).json() == {"ok": True}

    async def test_is_told_though_their_account_is_on_hold(
        self, service: RunningService, superuser: asyncpg.Connection, alice: httpx.AsyncClient
    ) -> None:
        user_id = UserId(UUID((await alice.get("/me")).json()["user_id"]))
        await set_user_state(superuser, user_id, "suspended")
        async with feed(alice) as events:
            await events.next()
            await superuser.execute(FAIL, MODEL, "unavailable", "model_missing")
            told = await events.until(MODEL, "unavailable")
        assert await runtime_of(alice) | {"database": {}} == told | {"database": {}}
        assert service.web.services.runtime.has_database


@pytest.mark.usefixtures("parts_work")
class TestTheFeed:
    async def test_begins_with_all_parts(self, alice: httpx.AsyncClient) -> None:
        async with feed(alice) as events:
            first = await events.next()
        assert {name: part["status"] for name, part in first.items()} == {
            **dict.fromkeys(("database", "workers", MODEL), "available")
        }

    async def test_misses_nothing_that_happens_while_it_begins(
        self,
        service: RunningService,
        superuser: asyncpg.Connection,
        alice: httpx.AsyncClient,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        begin = OwnApprovals.begin

        async def begin_late(self: OwnApprovals) -> None:
            """Of what a reader is shown first, the parts are read after this."""
            await superuser.execute(FAIL, MODEL, "unavailable", "ollama_unreachable")
            await has_looked(service.web.services.runtime)
            await begin(self)

        monkeypatch.setattr(OwnApprovals, "begin", begin_late)
        async with feed(alice) as events:
            assert (await events.next())[MODEL]["status"] == "unavailable"

    async def test_tells_each_change_to_everybody_once_and_with_a_higher_version(
        self, superuser: asyncpg.Connection, alice: httpx.AsyncClient, bob: httpx.AsyncClient
    ) -> None:
        async with feed(alice) as mine, feed(bob) as others:
            for events in (mine, others):
                await events.next()
            for reason in ("ollama_unreachable", "model_missing"):  # the second is no news
                await superuser.execute(FAIL, MODEL, "unavailable", reason)
            for events in (mine, others):
                await events.until(MODEL, "unavailable")
            await superuser.execute(FAIL, MODEL, "unavailable", "ollama_unreachable")
            await superuser.execute(PASS, MODEL)
            for events in (mine, others):
                await events.until(MODEL, "available")
                told = [parts[MODEL] for parts in events.told]
                assert [each["status"] for each in told] == [
                    *("available", "unavailable", "available")
                ]
                versions = [each["version"] for each in told]
                assert versions == [versions[0] + n for n in range(3)]
                assert told[1]["reason"] == "ollama_unreachable"

    async def test_is_told_nothing_because_somebody_else_begins_to_read(
        self, superuser: asyncpg.Connection, alice: httpx.AsyncClient, bob: httpx.AsyncClient
    ) -> None:
        async with feed(alice) as mine:
            await mine.next()
            async with feed(bob) as others:
                await others.next()
            await superuser.execute(FAIL, MODEL, "unavailable", "ollama_unreachable")
            assert (await mine.next())[MODEL]["status"] == "unavailable"

    async def test_of_many_costs_one_look_and_no_statement_of_each(
        self,
        service: RunningService,
        superuser: asyncpg.Connection,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        people = [service.client(f"one of many {uuid4()}") for _ in range(12)]
        begun = asyncio.Semaphore(0)
        asked: list[object] = []

        async def read(person: httpx.AsyncClient) -> None:
            async with feed(person) as events:
                await events.next()
                begun.release()
                await events.until(MODEL, "unavailable")

        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as reading:
            for person in people:
                reading.create_task(read(person))
            for _ in people:
                await begun.acquire()
            for name in ("read_runs", "own_limits"):
                monkeypatch.setattr(own_events, name, lambda *of: asked.append(of))
            await superuser.execute(FAIL, MODEL, "unavailable", "ollama_unreachable")
        assert asked == []

    async def test_leaves_no_listener_behind(
        self, service: RunningService, alice: httpx.AsyncClient
    ) -> None:
        watch = service.web.services.runtime
        async with asyncio.timeout(PATIENCE):
            for _ in range(3):
                async with feed(alice) as events:
                    await events.next()
                    assert watch._listeners
            while watch._listeners:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)


@pytest.mark.usefixtures("parts_work")
class TestOnesOwnLink:
    NAME = "connection:mine"

    async def test_that_fails_is_told_to_its_person_only_until_it_works(
        self, service: RunningService, alice: httpx.AsyncClient, bob: httpx.AsyncClient
    ) -> None:
        stands = await self._add(service, alice)
        async with feed(alice) as mine, feed(bob) as others:
            assert self.NAME not in await mine.next()
            await others.next()
            await stands("available")
            works = (await mine.until(self.NAME, "available"))[self.NAME]
            await stands("unavailable", "exited")
            fails = (await mine.until(self.NAME, "unavailable"))[self.NAME]
            assert fails["reason"] == "mcp_exited"
            assert fails["version"] == works["version"] + 1

            await stands("unavailable", "unreachable")
            again = (await runtime_of(alice))[self.NAME]
            assert again == fails  # since when and why is what was so first

            await alice.post("/connections/mine/reconnect")
            assert (await runtime_of(alice))[self.NAME] == fails  # until it was tried
            me = named((await alice.get("/me")).json()["runtime"])
            assert me[self.NAME] == fails
            await stands("available")
            back = (await mine.until(self.NAME, "available"))[self.NAME]
            assert back["version"] == fails["version"] + 1

            assert self.NAME not in await runtime_of(bob)
            assert self.NAME not in (await bob.get("/me")).text
            assert [self.NAME in parts for parts in others.told] == [False]

    async def test_that_is_switched_off_is_nobodys_trouble(
        self, service: RunningService, alice: httpx.AsyncClient
    ) -> None:
        stands = await self._add(service, alice)
        async with feed(alice) as mine:
            await stands("unavailable", "exited")
            await mine.until(self.NAME, "unavailable")
            assert (await alice.post("/connections/mine/disconnect")).is_success
            await mine.until(self.NAME, None)
            assert self.NAME not in await runtime_of(alice)

    async def test_that_is_removed_is_no_more_and_one_of_its_name_begins_beyond(
        self, service: RunningService, alice: httpx.AsyncClient
    ) -> None:
        stands = await self._add(service, alice)
        await stands("unavailable", "exited")
        before = (await runtime_of(alice))[self.NAME]
        async with feed(alice) as mine:
            await mine.next()
            assert (await alice.delete("/connections/mine")).is_success
            await mine.until(self.NAME, None)
            stands = await self._add(service, alice)
            await stands("available")
            after = (await mine.until(self.NAME, "available"))[self.NAME]
            assert after["version"] > before["version"]

    @staticmethod
    async def _add(service: RunningService, person: httpx.AsyncClient) -> Stands:
        """Add a server; gives what notes how it was found to stand, as a worker does."""
        added = await person.post("/connections", json={"name": "mine", "url": OWN})
        assert added.is_success, added.text
        services, whose = (
            service.web.services,
            Whose(UserId(UUID((await person.get("/me")).json()["user_id"]))),
        )

        async def stands(state: StoredState, reason: str | None = None) -> None:
            row = await services.connections.rows.of_server(whose, "mine")
            assert row is not None
            standing = Standing(state, reason)
            assert await services.connections.rows.finish_check(whose, row, row.version, standing)
            services.announcer.connection_changed(connection_key(whose.user_id, row.connection_id))

        return stands


class TestADatabaseThatIsAway:
    async def test_is_told_to_whoever_reads_and_whoever_asks_until_it_is_back(
        self, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        missed = asyncio.Event()
        wait = OwnEvents._until_the_database_is_back

        def wait_for_it(self: OwnEvents, heard: HeardChanges) -> AsyncGenerator[bytes, None]:
            missed.set()
            return wait(self, heard)

        monkeypatch.setattr(OwnEvents, "_until_the_database_is_back", wait_for_it)
        async with running_service(postgres, worker=False) as service:
            alice, bob, stranger = (
                service.client("alice"),
                service.client("bob"),
                service.client(None),
            )
            await start_run(bob, await new_thread(bob))  # it waits, and is looked at all the time
            async with feed(alice) as rests, feed(bob) as looks:
                before = [(await each.next())["database"] for each in (rests, looks)]
                async with closed(service):
                    aways = [
                        (await each.until("database", "unavailable"))["database"]
                        for each in (rests, looks)
                    ]
                    async with asyncio.timeout(PATIENCE):
                        await missed.wait()
                    assert aways[0] == aways[1]
                    away = aways[0]
                    assert away["reason"] == "database_unreachable"
                    assert away["version"] > max(each["version"] for each in before)
                    # Also whoever asks, though nobody can say who they are.
                    assert (await runtime_of(alice))["database"] == away
                    assert (await stranger.get("/runtime")).status_code == 401
                    assert (await stranger.get("/ok")).json() == {"ok": True}
                for each in (rests, looks):
                    back = (await each.until("database", "available"))["database"]
                    assert back["version"] > away["version"]
                # What else has become of runs is told as the feed is read again.
                async with asyncio.timeout(PATIENCE):
                    assert [each async for each in looks.frames if each.event != "runtime"] == []
            async with feed(bob) as looks:
                assert (await looks.next())["database"]["version"] > away["version"]


@asynccontextmanager
async def closed(service: RunningService) -> AsyncIterator[None]:
    """Within, the service's database takes no connections, and those that there were are cut."""
    admin = await asyncpg.connect(service.postgres.dsn("owner", "postgres"))
    try:
        await admin.execute(CLOSE.format(service.database, 0))
        await admin.execute(CUT, service.database)
        yield
    finally:
        await admin.execute(CLOSE.format(service.database, -1))
        await admin.close()
