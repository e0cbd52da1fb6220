"""The example server, as it runs: killed, started again, asked twice and by two at once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import mcp_types
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

from app.tools.catalogue import Catalogue
from app.tools.examples.tickets.server import ANOTHER_CALL, KEY, NO_KEY, NOT_REPLAY_SAFE, TTL
from tests.support.tool_servers.pools import (
    NO_CREDENTIAL,
    SECONDS,
    called,
    running_pool,
    said,
    somebody,
    text_of,
)
from tests.support.tool_servers.tickets import SOURCE, TicketsFile, arguments, tickets_over_http

EXAMPLE = SOURCE.parent / "deploy" / "mcp-tickets.json"
AT_ONCE = 12


class Asking:
    """A client that says the key itself."""

    def __init__(self, client: Client[Any]) -> None:
        self._client = client

    async def call(self, tool: str, key: object = None, **given: Any) -> mcp_types.CallToolResult:
        meta: Any = None if key is None else {KEY: key}
        result = await self._client.session.call_tool(tool, given, meta=meta)
        assert isinstance(result, mcp_types.CallToolResult)
        return result

    async def number_of(self, title: str) -> int:
        """A new ticket's."""
        made = await self.call("create", str(uuid4()), title=title)
        number: int = json.loads(text_of(made))["number"]
        return number

    async def tools(self) -> list[mcp_types.Tool]:
        return await self._client.list_tools()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> TicketsFile:
    """What two processes have open."""
    return TicketsFile(tmp_path_factory.mktemp("tickets") / "tickets.db")


@pytest.fixture(scope="module")
async def by_stdio(shared: TicketsFile) -> AsyncIterator[Asking]:
    transport = StdioTransport(
        sys.executable, list(arguments(shared.path)), cwd=str(SOURCE.parent), keep_alive=False
    )
    async with Client(transport, init_timeout=SECONDS) as client:
        yield Asking(client)


@pytest.fixture(scope="module")
async def by_http(shared: TicketsFile) -> AsyncIterator[Asking]:
    async with (
        tickets_over_http(shared.path) as url,
        Client(StreamableHttpTransport(url), init_timeout=SECONDS) as client,
    ):
        yield Asking(client)


@pytest.fixture(params=["by_stdio", "by_http"])
def server(request: pytest.FixtureRequest, by_stdio: Asking, by_http: Asking) -> Asking:
    """Each way to it."""
    return by_stdio if request.param == "by_stdio" else by_http


@pytest.fixture
def file(tmp_path: Path) -> TicketsFile:
    return TicketsFile(tmp_path / "tickets.db")


class TestTheServer:
    async def test_does_once_what_it_is_told_twice(
        self, server: Asking, shared: TicketsFile
    ) -> None:
        number = await server.number_of("A door squeaks")
        key = f"key-{number}"
        calls: list[tuple[str, dict[str, Any]]] = [
            ("create", {"title": "A door"}),
            ("update", {"number": number, "note": "Oil it."}),
            ("close", {"number": number, "note": "Oiled."}),
        ]
        first = [await server.call(tool, f"{key}-{tool}", **given) for tool, given in calls]
        again = [await server.call(tool, f"{key}-{tool}", **given) for tool, given in calls]
        assert again == first
        assert not any(each.is_error for each in first)
        assert shared.changes(number) == [
            ("created", ""),
            ("noted", "Oil it."),
            ("closed", "Oiled."),
        ]

    async def test_refuses_a_key_that_was_used_for_another_call(
        self, server: Asking, shared: TicketsFile
    ) -> None:
        number = await server.number_of("A window")
        key = f"key-{number}"
        await server.call("update", key, number=number, note="Clean it.")
        others = [
            await server.call("update", key, number=number, note="Break it."),
            await server.call("close", key, number=number, note="Clean it."),
        ]
        assert [(each.is_error, text_of(each)) for each in others] == [(True, ANOTHER_CALL)] * 2
        assert shared.changes(number) == [("created", ""), ("noted", "Clean it.")]

    async def test_answers_a_refusal_alike_though_it_would_not_refuse_any_more(
        self, server: Asking, shared: TicketsFile
    ) -> None:
        coming = await server.number_of("The one before") + 1
        key = f"key-{coming}"
        refused = await server.call("update", key, number=coming, note="Oil it.")
        assert refused.is_error
        assert await server.number_of("The one that comes") == coming
        assert await server.call("update", key, number=coming, note="Oil it.") == refused
        assert shared.changes(coming) == [("created", "")]

    async def test_acts_without_a_key_and_says_that_this_is_not_replay_safe(
        self, server: Asking, shared: TicketsFile
    ) -> None:
        number = await server.number_of("A chair")
        results = [await server.call("update", number=number, note="Paint it.") for _ in range(2)]
        assert [each.content[-1].text for each in results] == [NOT_REPLAY_SAFE] * 2  # type: ignore[union-attr]
        strange = await server.call("update", {"not": "a text"}, number=number, note="Paint it.")
        assert (strange.is_error, text_of(strange)) == (True, NO_KEY)
        assert shared.changes(number) == [("created", ""), *[("noted", "Paint it.")] * 2]

    async def test_says_for_how_long_it_knows_a_key(self, server: Asking) -> None:
        promised = {tool.name: (tool.meta or {}).get(TTL) for tool in await server.tools()}
        day = 86400
        assert promised == {"create": day, "update": day, "close": day, "get": None, "list": None}

    async def test_lists_and_reads(self, server: Asking) -> None:
        number = await server.number_of("A lamp")
        assert json.loads(text_of(await server.call("list")))[0]["title"] == "A lamp"
        assert json.loads(text_of(await server.call("get", number=number)))["title"] == "A lamp"
        assert (await server.call("get", number=number + 1)).is_error


class TestOneKeyFromManyAtOnce:
    async def test_is_one_effect_though_two_processes_have_the_file_open(
        self, by_stdio: Asking, by_http: Asking, shared: TicketsFile
    ) -> None:
        number = await by_http.number_of("A table")
        results = await asyncio.gather(
            *(
                each.call("update", "at once", number=number, note="Lay it.")
                for each in [by_stdio, by_http] * (AT_ONCE // 2)
            )
        )
        assert all(each == results[0] for each in results)
        assert shared.changes(number) == [("created", ""), ("noted", "Lay it.")]


class Spoken:
    """A process by stdio, to which lines are said as they stand."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def started(cls, file: TicketsFile) -> Self:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *arguments(file.path)),
            cwd=SOURCE.parent,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        spoken = cls(process)
        about = {"name": "test", "version": "1"}
        begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        hello = json.loads(await spoken.ask("initialize", begin))
        assert "for 86400 seconds" in hello["result"]["instructions"]
        spoken.say({"method": "notifications/initialized"})
        return spoken

    async def create(self, key: str) -> bytes:
        params = {"name": "create", "arguments": {"title": "A door"}, "_meta": {KEY: key}}
        return await self.ask("tools/call", params)

    async def ask(self, method: str, params: dict[str, Any]) -> bytes:
        self.say({"id": 1, "method": method, "params": params})
        assert self._process.stdout is not None
        return await self._process.stdout.readline()

    def say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def kill(self) -> None:
        self._process.kill()
        await self._process.wait()

    async def ended(self) -> int:
        return await self._process.wait()


class TestAnAnswer:
    async def test_is_the_first_one_to_the_byte_when_its_process_was_killed_since(
        self, file: TicketsFile
    ) -> None:
        first = await Spoken.started(file)
        answer = await first.create("k")
        await first.kill()
        second = await Spoken.started(file)
        assert await second.create("k") == answer
        assert b"A door" in answer
        await second.kill()

    async def test_is_not_given_where_nobody_can_say_what_was_done_before(
        self, file: TicketsFile
    ) -> None:
        spoken = await Spoken.started(file)
        file.execute("DROP TABLE keys")
        assert await spoken.create("k") == b""
        assert await spoken.ended() == 1
        assert file.changes() == []


class TestTheOperatorsExample:
    async def test_gives_each_person_tickets_of_their_own(self, tmp_path: Path) -> None:
        # As the pages say of a checkout.
        text = EXAMPLE.read_text(encoding="utf-8").replace("/opt/stoa", str(SOURCE.parent))
        named = tmp_path / "tickets.json"
        named.write_text(text, encoding="utf-8")
        server = Catalogue.load([named]).servers["tickets"]
        async with running_pool(tmp_path, "auto") as pool:
            async with pool.lease(somebody(), server, NO_CREDENTIAL) as connection:
                tools = {tool.name for tool in connection.tools}
                await called(connection, "create", title="A door squeaks")
                assert "A door squeaks" in await said(connection, "list")
            async with pool.lease(somebody(), server, NO_CREDENTIAL) as connection:
                assert await said(connection, "list") == "[]"
        trust = server.trust
        assert {tool for tool in tools if trust.is_read_only(tool)} == {"get", "list"}
        assert all(trust.is_idempotent(tool) for tool in tools)
        assert trust.idempotency_ttl_seconds == 86400
        words = {tool: server.approval.of(tool).word for tool in tools}
        assert words == {
            **dict.fromkeys(("create", "update"), "first_use"),
            **dict.fromkeys(("get", "list"), "never"),
            "close": "always",
        }
