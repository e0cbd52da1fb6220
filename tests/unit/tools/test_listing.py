"""What a server lists is kept within bounds, whatever it says."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types
import pytest

from app.tools.pool.listing import (
    MAX_DESCRIPTION,
    MAX_LISTING_BYTES,
    MAX_NAME,
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_DEPTH,
    MAX_TOOLS,
    MAX_VALUES,
    Listing,
    list_within_bounds,
    within_bounds,
)
from app.tools.pool.pages import MAX_PAGES, MOST_BYTES
from app.tools.redaction import Redactor
from app.tools.servers import Credential, McpServer, StdioTransport

SERVER = McpServer("any", StdioTransport("any"))


def tool(name: str, description: str = "", schema: dict[str, Any] | None = None) -> mcp_types.Tool:
    return mcp_types.Tool(
        name=name, description=description, input_schema=schema or {"type": "object"}
    )


def listed(*tools: mcp_types.Tool, server: McpServer = SERVER) -> Listing:
    return within_bounds(tools, server)


def names(listing: Listing) -> list[str]:
    return [each.name for each in listing.tools]


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"not": schema}
    return {"type": "object", "properties": schema}


class Server:
    """Answers with a page that always has a next one."""

    def __init__(self, cursor: str | None = None, description: str = "") -> None:
        self.pages = 0
        self.cursor = cursor
        self.description = description

    async def page(self, cursor: str | None) -> mcp_types.ListToolsResult:
        self.pages += 1
        return mcp_types.ListToolsResult(
            tools=[tool(f"tool-{self.pages}", self.description)],
            next_cursor=self.cursor or str(self.pages),
        )


class TestPages:
    async def test_an_endless_listing_ends(self) -> None:
        server = Server()
        listing = await list_within_bounds(server.page, SERVER)
        assert server.pages == MAX_PAGES
        assert len(listing.tools) == MAX_PAGES

    async def test_a_cursor_that_comes_again_ends_it(self) -> None:
        server = Server(cursor="same")
        await asyncio.wait_for(list_within_bounds(server.page, SERVER), 60)
        assert server.pages == 2

    async def test_that_are_large_are_few(self) -> None:
        server = Server(description="x" * (MOST_BYTES // 3))
        listing = await list_within_bounds(server.page, SERVER)
        assert server.pages == 3
        assert names(listing) == ["tool-1", "tool-2", "tool-3"]


class TestTools:
    def test_are_as_many_as_there_may_be(self) -> None:
        listing = listed(*(tool(f"tool-{n}") for n in range(MAX_TOOLS + 5)))
        assert len(listing.tools) == MAX_TOOLS
        assert listing.left_out == 5

    def test_are_those_that_the_operator_offers(self) -> None:
        tools = [tool("a"), tool("b"), tool("c")]
        only = McpServer("any", StdioTransport("any"), allow=frozenset("ab"), deny=frozenset("b"))
        assert names(listed(*tools, server=only)) == ["a"]

    def test_are_each_there_once(self) -> None:
        listing = listed(tool("a", "first"), tool("a", "second"))
        assert [each.description for each in listing.tools] == ["first"]

    def test_have_descriptions_of_a_bounded_length(self) -> None:
        (found,) = listed(tool("a", "x" * 100_000)).tools
        assert len(found.description) == MAX_DESCRIPTION

    @pytest.mark.parametrize(
        "unusable",
        [
            tool("x" * (MAX_NAME + 1)),
            tool("a\nb"),
            tool("deep", schema=nested(MAX_SCHEMA_DEPTH)),
            tool("long", schema={"type": "object", "x": "y" * MAX_SCHEMA_BYTES}),
        ],
        ids=["name", "line", "depth", "size"],
    )
    def test_that_are_beyond_bounds_are_left_out(self, unusable: mcp_types.Tool) -> None:
        listing = listed(unusable, tool("good"))
        assert names(listing) == ["good"]
        assert listing.left_out == 1

    def test_do_not_take_more_room_together_than_there_is(self) -> None:
        schema = {"type": "object", "x": "y" * (MAX_SCHEMA_BYTES - 100)}
        listing = listed(*(tool(f"tool-{n}", schema=schema) for n in range(40)))
        assert len(listing.tools) == MAX_LISTING_BYTES // MAX_SCHEMA_BYTES
        assert listing.left_out == 40 - len(listing.tools)

    def test_do_not_take_more_work_together_than_there_may_be(self) -> None:
        schema = {"type": "object", "x": [[] for _ in range(MAX_VALUES // 10)]}
        listing = listed(*(tool(f"tool-{n}", schema=schema) for n in range(20)))
        assert len(listing.tools) == 9
        assert listing.left_out == 11


class TestVersion:
    def test_is_another_for_another_listing(self) -> None:
        assert listed(tool("a")).version == listed(tool("a")).version
        assert listed(tool("a")).version != listed(tool("a", "changed")).version


class TestAListOfTensOfThousands:
    def test_is_not_looked_through(self) -> None:
        listing = listed(*(tool("same") for _ in range(5000)), tool("last"))
        assert (names(listing), listing.left_out) == (["same"], 5000)


class TestAToolThatCannotBeStored:
    @pytest.mark.parametrize(
        "schema", [{"default": float("nan")}, {"maximum": float("inf")}, {"description": "a\x00b"}]
    )
    def test_is_left_out(self, schema: dict[str, Any]) -> None:
        listing = listed(tool("odd", schema=schema), tool("even", "e\x00ven"))
        assert [(each.name, each.description) for each in listing.tools] == [("even", "even")]

    def test_is_none_that_only_speaks_of_it(self) -> None:
        assert names(listed(tool("any", schema={"pattern": r"[\u0000-\u0020]"}))) == ["any"]


class TestWhatAServerRepeatsOfItsUsersCredential:
    def test_is_in_no_listing(self) -> None:
        key = "canary-0123456789"
        redactor = Redactor(SERVER, Credential(1, headers={"X-Key": key}))
        about = {"description": key, "properties": {key: {"default": f"key={key}"}}}
        told = mcp_types.Tool(name="b", title=key, description=f"Hi {key}", input_schema=about)
        listing = within_bounds([tool(f"a-{key}"), told], SERVER, redactor)
        assert names(listing) == ["b"]
        assert key not in repr(listing)
