"""What servers let be read beside their tools: listed, listed anew, never at the tools' cost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from app.tools.pool.failures import NotReadable, Reason, ToolServerUnavailable
from app.tools.pool.leased import ToolConnection
from app.tools.pool.pages import MAX_PAGES
from app.tools.pool.pool import ToolPool
from app.tools.readable import ListedResource, Readable
from app.tools.stdio import child
from tests.support.tool_servers.http import HttpToolServer, http_tool_server
from tests.support.tool_servers.pools import (
    NO_CREDENTIAL,
    SECONDS,
    at,
    called,
    impatient,
    quick,
    running_pool,
    said,
    somebody,
    until,
)
from tests.support.tool_servers.real import by_node

READ = ("resources/list", "prompts/list")


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[ToolPool]:
    async with running_pool(tmp_path) as pool:
        yield pool


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """With servers that hang, once their input is closed."""
    monkeypatch.setattr(child, "INPUT_CLOSED_SECONDS", 0.1)


@pytest.fixture
async def far() -> AsyncIterator[HttpToolServer]:
    async with http_tool_server() as running:
        yield running


async def whole(connection: ToolConnection) -> Readable:
    """What it lets be read, once it has said so."""
    await connection.until_whole(SECONDS)
    return connection.readable


def uris(readable: Readable) -> list[str]:
    return [each.uri for each in readable.resources or ()]


def names(readable: Readable) -> list[str]:
    return [each.name for each in readable.prompts or ()]


class TestAServerThatLetsThingsBeRead:
    async def test_lists_them_beside_its_tools(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), quick("readable"), NO_CREDENTIAL) as connection:
            found = await whole(connection)
        assert found.resources == (
            ListedResource("quick://first", "first", None, "", "text/plain"),
        )
        assert [(each.name, each.needs_arguments) for each in found.prompts or ()] == [
            ("first", False),
            ("told", True),
        ]

    async def test_is_asked_again_when_it_says_that_there_are_others(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), quick("readable"), NO_CREDENTIAL) as connection:
            await whole(connection)
            await called(connection, "publish", name="second")
            await until(lambda: "quick://second" in uris(connection.readable))
            await until(lambda: "second" in names(connection.readable))

    async def test_so_it_is_over_http_where_it_tells_only_whoever_asks(
        self, pool: ToolPool, far: HttpToolServer
    ) -> None:
        async with pool.lease(somebody(), at(far.url), NO_CREDENTIAL) as connection:
            assert "note://first" in uris(await whole(connection))
            await called(connection, "publish")
            await until(lambda: "note://published" in uris(connection.readable))
            await until(lambda: "published" in names(connection.readable))

    async def test_of_the_registries_does(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), by_node("everything"), NO_CREDENTIAL) as connection:
            found = await whole(connection)
            assert found.resources
            wants = {each.name: each.needs_arguments for each in found.prompts or ()}
            assert (wants["simple-prompt"], wants["args-prompt"]) == (False, True)
            (uri, *_) = uris(found)
            read = await connection.read_resource(uri, seconds=SECONDS)
            assert read.contents
            told = await connection.get_prompt("simple-prompt", seconds=SECONDS)
            assert told.messages


class TestAServerThatDoesNot:
    async def test_is_never_asked(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), quick(), NO_CREDENTIAL) as connection:
            assert await whole(connection) == Readable((), ())
            await called(connection, "publish", name="nothing")
            await called(connection, "announce")
            await until(lambda: "new" in [each.name for each in connection.tools])
            heard = json.loads(await said(connection, "heard"))
        assert not set(READ) & set(heard)


class TestWhatAServerChangesBeforeItPromisesToTell:
    async def test_is_heard_of_all_the_same(self, pool: ToolPool, far: HttpToolServer) -> None:
        """Given a server whose tools become more after they were listed and before it listens."""
        far.holds_listening = True
        async with pool.lease(somebody(), at(far.url), NO_CREDENTIAL) as connection:
            await far.is_listened_to(1)
            assert "sudden" not in [each.name for each in connection.tools]
            far.add_sudden_tool()
            far.may_listen.set()
            await until(lambda: "sudden" in [each.name for each in connection.tools])


class TestWhateverGoesWrongWithThat:
    async def test_an_endless_list_ends(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), quick("readable", "endless"), NO_CREDENTIAL) as found:
            readable = await whole(found)
            assert (len(uris(readable)), len(found.tools)) == (MAX_PAGES, MAX_PAGES)

    @pytest.mark.parametrize("how", ["mute", "failing"])
    async def test_leaves_the_tools_as_they_are(self, pool: ToolPool, how: str) -> None:
        server = quick("readable", how)
        async with pool.lease(somebody(), server, NO_CREDENTIAL) as connection:
            assert await said(connection, "whoami")
            assert connection.readable == Readable()
            assert connection.tools

    @pytest.mark.parametrize("how", ["dying", "huge"])
    async def test_costs_one_connection_and_no_call_after_it(
        self, pool: ToolPool, how: str
    ) -> None:
        owner, server = somebody(), quick("readable", how)
        with suppress(ToolServerUnavailable):
            async with pool.lease(owner, server, NO_CREDENTIAL) as connection:
                await whole(connection)
        await until(lambda: pool.open_connections == 0)
        async with pool.lease(owner, server, NO_CREDENTIAL) as connection:
            assert await whole(connection) == Readable()
            assert await said(connection, "whoami")
            heard = json.loads(await said(connection, "heard"))
        assert not set(READ) & set(heard)

    @pytest.mark.parametrize("status", [401, 403, 500])
    async def test_so_does_a_refusal_over_http(
        self, pool: ToolPool, far: HttpToolServer, status: int
    ) -> None:
        far.refused = dict.fromkeys(READ, status)
        async with pool.lease(somebody(), at(far.url), NO_CREDENTIAL) as connection:
            assert await whole(connection) == Readable()
            assert await said(connection, "add", a=1, b=2) == "3"


class TestReading:
    async def test_that_is_refused_ends_no_connection(
        self, pool: ToolPool, far: HttpToolServer
    ) -> None:
        far.refused = {"resources/read": 403}
        async with pool.lease(somebody(), at(far.url), NO_CREDENTIAL) as connection:
            with pytest.raises(NotReadable):
                await connection.read_resource("note://first", seconds=SECONDS)
            assert await said(connection, "add", a=1, b=2) == "3"

    async def test_says_nothing_of_what_the_server_says_of_its_failure(
        self, pool: ToolPool
    ) -> None:
        async with pool.lease(somebody(), quick("readable"), NO_CREDENTIAL) as connection:
            with pytest.raises(NotReadable) as caught:
                await connection.read_resource("quick://gone", seconds=SECONDS)
        assert "secret" not in repr(caught.value)

    async def test_is_over_when_its_time_is(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), quick("readable"), NO_CREDENTIAL) as connection:
            with pytest.raises(TimeoutError):
                await connection.read_resource("quick://hang", seconds=0.2)
            assert await said(connection, "whoami")

    async def test_ends_with_its_server(self, pool: ToolPool) -> None:
        server = quick("readable", timeouts=impatient())
        async with pool.lease(somebody(), server, NO_CREDENTIAL) as connection:
            with pytest.raises(ToolServerUnavailable) as caught:
                await connection.read_resource("quick://die", seconds=SECONDS)
        assert caught.value.reason == Reason.EXITED

    async def test_ends_when_whoever_reads_gives_up(self, pool: ToolPool, tmp_path: Path) -> None:
        async with pool.lease(somebody(), quick("readable"), NO_CREDENTIAL) as connection:
            folder = Path(json.loads(await said(connection, "whoami"))["folder"])
            reading = asyncio.create_task(connection.read_resource("quick://hang", seconds=SECONDS))
            await until((folder / "reading").exists)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert "notifications/cancelled" in json.loads(await said(connection, "heard"))
