"""What a person's servers let be read is kept for them, and read by their own connections alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from app.connections import reading
from app.connections.reading import ConnectionReader, ReadingFailed
from app.connections.standing import UserServer
from app.tools.entries import versioned
from app.tools.pool.pool import ToolPool
from app.tools.readable import ListedPrompt, ListedResource, PromptArgument, Readable
from app.tools.servers import CredentialKind, CredentialRule, McpServer
from app.tools.stdio import child
from app.worker import check_connections
from app.worker.check_connections import ConnectionChecker
from tenancy.database.crossing import DispatchDatabase
from tenancy.principal import ClaimedRun, Principal
from tests.integration.connections.process import Process, running_process
from tests.support.tenancy import TestDatabase
from tests.support.tool_servers.http import HttpToolServer, http_tool_server
from tests.support.tool_servers.pools import SECONDS, at, quick, running_pool, until

KEY = "canary-0123456789"
BY_KEY = CredentialRule(CredentialKind.ENVIRONMENT, "QUICK_KEY", "{key}")
FIRST = ListedResource("quick://first", "first")
TOLD = ListedPrompt("told", arguments=(PromptArgument("what", is_required=True),))
READABLE = Readable(
    tuple(
        ListedResource(f"quick://{name}", name)
        for name in ("first", "environment", "hang", "die", "die-once", "gone")
    ),
    (ListedPrompt("first"), TOLD),
)


class Reading:
    """A process that reads for people, of one server."""

    def __init__(self, process: Process, pool: ToolPool, server: McpServer) -> None:
        self.process = process
        self.pool = pool
        self.server = server
        self.reader = ConnectionReader(
            process.connections, process.credentials, pool, seconds=SECONDS
        )

    async def note(self, person: Principal, readable: Readable = READABLE) -> None:
        """Keep what the server is said to have listed for somebody."""
        found = await self.found(person)
        await self.process.connections.store_listing(
            person, self.server, found.version, [], "available", readable=readable
        )

    async def found(self, person: Principal) -> UserServer:
        return await self.process.connections.find(person, self.server.name)

    async def resource(self, run: ClaimedRun, name: str = "first") -> str:
        return await self.reader.resource(run, self.server.name, f"quick://{name}")


@asynccontextmanager
async def reading_of(
    database: TestDatabase, folder: Path, server: McpServer
) -> AsyncIterator[Reading]:
    async with running_process(database, server) as process, running_pool(folder) as pool:
        yield Reading(process, pool, server)


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """With servers that hang, once their input is closed; with slow machines there is much."""
    monkeypatch.setattr(child, "INPUT_CLOSED_SECONDS", 0.1)
    monkeypatch.setattr(check_connections, "READABLE_SECONDS", SECONDS)


@pytest.fixture
async def quickly(database: TestDatabase, tmp_path: Path) -> AsyncIterator[Reading]:
    """Of a server that wants no key."""
    async with reading_of(database, tmp_path, quick("readable")) as found:
        yield found


@pytest.fixture
async def keyed(database: TestDatabase, tmp_path: Path) -> AsyncIterator[Reading]:
    """Of a server that knows people by their keys."""
    async with reading_of(database, tmp_path, quick("readable", credential=BY_KEY)) as found:
        yield found


@pytest.fixture(scope="module")
async def far() -> AsyncIterator[HttpToolServer]:
    async with http_tool_server() as running:
        yield running


def run_of(person: Principal) -> ClaimedRun:
    return ClaimedRun(person.user_id, uuid4(), 1)


async def why_not(reading: Awaitable[str]) -> str:
    with pytest.raises(ReadingFailed) as caught:
        await reading
    return caught.value.reason


class TestWhatIsKept:
    async def test_is_what_a_check_finds_beside_the_tools(
        self, database: TestDatabase, quickly: Reading, alice: Principal, bob: Principal
    ) -> None:
        process = quickly.process
        dispatch = DispatchDatabase(database.settings("dispatch"))
        checker = ConnectionChecker(
            dispatch, process.connections, process.credentials, quickly.pool, process.announcer
        )
        await checker.start()
        try:
            await process.changes.connect(alice, "quick")
            checker.hear("")
            async with asyncio.timeout(SECONDS):
                while (await quickly.found(alice)).state == "checking":  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        finally:
            await checker.stop()
            await dispatch.close()
        found = await quickly.found(alice)
        assert found.state == "available"
        assert found.resources == (replace(FIRST, mime_type="text/plain"),)
        assert found.prompts == (ListedPrompt("first"), TOLD)
        assert (await quickly.found(bob)).resources == ()

    async def test_is_what_it_was_where_the_server_says_nothing_of_it(
        self, quickly: Reading, alice: Principal
    ) -> None:
        await quickly.note(alice)
        await quickly.note(alice, Readable(prompts=()))
        found = await quickly.found(alice)
        assert (found.resources, found.prompts) == (READABLE.resources, ())

    async def test_is_what_it_was_while_the_server_cannot_be_reached(
        self, quickly: Reading, alice: Principal
    ) -> None:
        await quickly.note(alice)
        version = (await quickly.found(alice)).version
        connections = quickly.process.connections
        await connections.store_listing(
            alice, quickly.server, version, None, "unavailable", "exited"
        )
        assert (await quickly.found(alice)).resources == READABLE.resources

    async def test_is_none_of_another_credential(self, keyed: Reading, alice: Principal) -> None:
        await keyed.process.changes.set_key(alice, "quick", "old")
        await keyed.note(alice)
        await keyed.process.changes.set_key(alice, "quick", "new")
        assert (await keyed.found(alice)).resources == ()
        await keyed.note(alice, Readable(prompts=(ListedPrompt("first"),)))
        assert (await keyed.found(alice)).resources == ()

    async def test_is_none_of_another_configuration(
        self, database: TestDatabase, quickly: Reading, alice: Principal
    ) -> None:
        await quickly.note(alice)
        other = versioned(replace(quickly.server, title="Other"))
        async with running_process(database, other) as process:
            assert (await process.connections.find(alice, "quick")).resources == ()

    async def test_goes_with_the_connection(self, quickly: Reading, alice: Principal) -> None:
        await quickly.note(alice)
        await quickly.process.changes.disconnect(alice, "quick")
        assert (await quickly.process.rows.all(alice))[0].readable is None

    async def test_is_told_where_it_alone_has_changed(
        self, quickly: Reading, alice: Principal
    ) -> None:
        await quickly.note(alice)
        before = (await quickly.found(alice)).updated_at
        await quickly.note(alice)
        assert (await quickly.found(alice)).updated_at == before
        await quickly.note(alice, Readable((FIRST,)))
        assert (await quickly.found(alice)).updated_at != before


class TestReading:
    async def test_gives_the_text_of_a_resource(self, quickly: Reading, alice: Principal) -> None:
        await quickly.note(alice)
        assert await quickly.resource(run_of(alice)) == "This is first."

    async def test_gives_what_a_prompt_says(self, quickly: Reading, alice: Principal) -> None:
        await quickly.note(alice)
        assert await quickly.reader.prompt(run_of(alice), "quick", "first") == "Do first."

    async def test_is_by_http_too(
        self, database: TestDatabase, tmp_path: Path, far: HttpToolServer, alice: Principal
    ) -> None:
        async with reading_of(database, tmp_path, at(far.url)) as found:
            readable = Readable((ListedResource("note://first", "first"),), READABLE.prompts)
            await found.note(alice, readable)
            run = run_of(alice)
            assert await found.reader.resource(run, "far", "note://first") == "a note"
            assert await found.reader.prompt(run, "far", "first") == "a note"

    async def test_is_with_ones_own_key_which_is_not_shown(
        self, keyed: Reading, alice: Principal, bob: Principal
    ) -> None:
        for person, key in ((alice, KEY), (bob, "bobs-own-key")):
            await keyed.process.changes.set_key(person, "quick", key)
            await keyed.note(person)
        seen = json.loads(await keyed.resource(run_of(alice), "environment"))
        assert seen["QUICK_KEY"] == "[redacted]"
        assert keyed.pool.owners == {alice.user_id}
        others = json.loads(await keyed.resource(run_of(bob), "environment"))
        assert (seen["HOME"] == others["HOME"], others["QUICK_KEY"]) == (False, "[redacted]")

    async def test_goes_on_where_the_server_ends_meanwhile(
        self, quickly: Reading, alice: Principal
    ) -> None:
        await quickly.note(alice)
        assert await quickly.resource(run_of(alice), "die-once") == "This is die-once."


class TestWhatCannotBeRead:
    async def test_is_what_the_server_does_not_list(
        self, quickly: Reading, alice: Principal, bob: Principal
    ) -> None:
        """Though it would answer: nobody asks it for what somebody else was shown."""
        await quickly.note(bob)
        run = run_of(alice)
        assert await why_not(quickly.resource(run)) == "not_found"
        assert await why_not(quickly.reader.prompt(run, "quick", "first")) == "not_found"
        assert quickly.pool.open_connections == 0

    @pytest.mark.parametrize("server", ["none", "no name", ""])
    async def test_is_what_no_server_has(
        self, quickly: Reading, alice: Principal, server: str
    ) -> None:
        found = quickly.reader.resource(run_of(alice), server, FIRST.uri)
        assert await why_not(found) == "not_found"

    async def test_is_a_prompt_that_is_to_be_told_something(
        self, quickly: Reading, alice: Principal
    ) -> None:
        await quickly.note(alice)
        found = quickly.reader.prompt(run_of(alice), "quick", "told")
        assert await why_not(found) == "needs_arguments"

    @pytest.mark.parametrize(("name", "reason"), [("gone", "failed"), ("die", "exited")])
    async def test_says_why(
        self, quickly: Reading, alice: Principal, name: str, reason: str
    ) -> None:
        await quickly.note(alice)
        assert await why_not(quickly.resource(run_of(alice), name)) == reason

    async def test_is_what_takes_too_long(self, quickly: Reading, alice: Principal) -> None:
        await quickly.note(alice)
        process = quickly.process
        quickly.reader = ConnectionReader(
            process.connections, process.credentials, quickly.pool, seconds=0.1
        )
        assert await why_not(quickly.resource(run_of(alice), "hang")) == "timeout"

    async def test_is_what_was_disconnected(self, quickly: Reading, alice: Principal) -> None:
        await quickly.note(alice)
        await quickly.process.changes.disconnect(alice, "quick")
        assert await why_not(quickly.resource(run_of(alice))) == "disconnected"

    async def test_is_what_nobody_gave_a_key_for(self, keyed: Reading, alice: Principal) -> None:
        assert await why_not(keyed.resource(run_of(alice))) == "needs_key"

    async def test_is_more_than_an_attempt_may_read(
        self, quickly: Reading, alice: Principal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "MOST_READS", 1)
        await quickly.note(alice)
        run = run_of(alice)
        assert await quickly.resource(run)
        assert await why_not(quickly.resource(run)) == "too_many"
        assert await quickly.resource(replace(run, fence=2))


class TestAReadThatIsGivenUp:
    async def test_is_given_up_by_the_server_too_and_holds_no_connection(
        self, quickly: Reading, alice: Principal
    ) -> None:
        await quickly.note(alice)
        credential = await quickly.process.credentials.current(alice, quickly.server)
        leasing = quickly.pool.lease(alice.user_id, quickly.server, credential)
        async with leasing as connection:
            told = await connection.call("whoami", {}, meta={}, seconds=SECONDS)
            folder = Path(json.loads(told.content[0].text)["folder"])  # type: ignore[union-attr]
            hanging = asyncio.create_task(quickly.resource(run_of(alice), "hang"))
            await until((folder / "reading").exists)
            hanging.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hanging
            heard = await connection.call("heard", {}, meta={}, seconds=SECONDS)
        assert "notifications/cancelled" in str(heard.content)
        assert all(each.leases == 0 for each in quickly.pool._tasks)
