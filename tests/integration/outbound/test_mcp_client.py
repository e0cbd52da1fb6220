"""Clients for MCP servers: they and the credential in them go to one origin and nowhere else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from ipaddress import ip_address

import httpx2
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from app.outbound import (
    AnswerTooLarge,
    TimedOut,
    Unreachable,
    UrlRefused,
    guarded_mcp_client_factory,
)
from app.outbound.addresses import Address
from app.outbound.bodies import Bounds
from tests.support.sites import answer, redirect, site

CANARY = {"Authorization": "Bearer canary"}
LISTED = {"jsonrpc": "2.0", "id": 1, "result": {}}


async def inner(_name: str) -> Sequence[Address]:
    return [ip_address("127.83.7.21")]


class TestAUsersOwnServer:
    @pytest.mark.parametrize(
        "url", ["http://tools.stoa.dev/mcp", "https://127.0.0.1/mcp", "https://localhost/mcp"]
    )
    def test_is_refused_by_its_look(self, url: str) -> None:
        with pytest.raises(UrlRefused):
            guarded_mcp_client_factory(url)

    async def test_whose_name_leads_inside_is_not_connected_to(self) -> None:
        url = "https://tools.stoa.dev:8443/mcp"
        async with (
            site(host="127.83.7.21", port=8443) as served,
            guarded_mcp_client_factory(url, resolve=inner)(headers=CANARY) as client,
        ):
            with pytest.raises(Unreachable):
                await client.get(url)
        assert served.connections == 0

    @pytest.mark.parametrize("status", ["302 Found", "307 Temporary Redirect"])
    async def test_that_leads_elsewhere_is_left_and_elsewhere_never_hears_of_it(
        self, status: str
    ) -> None:
        async with site() as elsewhere, site() as server:
            server.replies["/mcp"] = redirect(elsewhere.url + "/mcp", status)
            transport = StreamableHttpTransport(
                server.url + "/mcp",
                headers=CANARY,
                httpx_client_factory=guarded_mcp_client_factory(
                    server.url, trusted=server.trusted | elsewhere.trusted
                ),
            )
            with pytest.raises(Exception):  # noqa: B017, PT011 - the library's, of some kind
                async with asyncio.timeout(20), Client(transport):
                    pass
        assert any("canary" in head for head in server.heads)
        assert elsewhere.connections == 0

    async def test_that_leads_elsewhere_is_left_by_whoever_follows(self) -> None:
        async with site() as elsewhere, site() as server:
            server.replies["/mcp"] = redirect(elsewhere.url + "/mcp")
            factory = guarded_mcp_client_factory(
                server.url, trusted=server.trusted | elsewhere.trusted
            )
            async with factory(headers=CANARY, follow_redirects=True) as client:
                assert (await client.get(server.url + "/mcp")).status_code == 302
                with pytest.raises(Unreachable):
                    await client.get(server.url + "/mcp", follow_redirects=True)
        assert elsewhere.connections == 0


class TestAServerThatTheOperatorTrusts:
    async def test_is_asked_wherever_it_is_with_the_credential(self) -> None:
        listed = answer(json.dumps(LISTED).encode(), Content_Type="application/json")
        async with site({"/mcp": listed}) as server:
            factory = guarded_mcp_client_factory(server.url, trusted=server.trusted)
            async with factory(headers=CANARY, timeout=httpx2.Timeout(20)) as client:
                assert (await client.get(server.url + "/mcp")).json() == LISTED
        assert "Authorization: Bearer canary" in server.heads[0]

    async def test_is_asked_directly_whatever_proxy_the_environment_names(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with site({"/": answer(b"direct")}) as server, site() as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            factory = guarded_mcp_client_factory(server.url, trusted=server.trusted)
            async with factory() as client:
                assert (await client.get(server.url)).text == "direct"
        assert proxy.connections == 0

    async def test_sets_no_cookie(self) -> None:
        async with site({"/": answer(b"", Set_Cookie="visitor=1")}) as server:
            factory = guarded_mcp_client_factory(server.url, trusted=server.trusted)
            async with factory() as client:
                await client.get(server.url)
                await client.get(server.url)
        assert "cookie" not in server.heads[1].lower()


class TestAnAnswer:
    async def test_is_bounded(self) -> None:
        async with site({"/": answer(bytes(1001), Content_Type="application/json")}) as server:
            factory = guarded_mcp_client_factory(
                server.url, trusted=server.trusted, answer_bytes=1000
            )
            async with factory() as client:
                with pytest.raises(AnswerTooLarge):
                    await client.get(server.url)

    async def test_that_is_a_stream_of_events_goes_on_for_as_long_as_it_is_read(self) -> None:
        events = answer(b"data: 1\n\n" * 500, Content_Type="Text/Event-Stream")
        async with site({"/": events}) as server:
            factory = guarded_mcp_client_factory(
                server.url, trusted=server.trusted, answer_bytes=1000
            )
            async with factory() as client:
                assert len((await client.get(server.url)).content) == 4500

    @pytest.mark.parametrize("status", ["307 Temporary Redirect", "500 Internal Server Error"])
    async def test_that_is_no_success_is_bounded_whatever_it_says_it_is(self, status: str) -> None:
        events = answer(
            b"data: 1\n\n" * 500, status=status, Content_Type="text/event-stream", Location="/"
        )
        async with site({"/": events}) as server:
            factory = guarded_mcp_client_factory(
                server.url, trusted=server.trusted, answer_bytes=1000
            )
            async with factory() as client:
                with pytest.raises(AnswerTooLarge):
                    await client.get(server.url)


class TestAServerThatEndsEachStreamAndWantsTheNextAtOnce:
    async def test_is_not_followed_at_its_pace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("app.outbound.mcp_client.MOST_GETS", 3)
        monkeypatch.setattr("app.outbound.mcp_client.GETS_SECONDS", 0.2)
        ended = answer(b"retry: 0\n\n", Content_Type="text/event-stream")
        loop = asyncio.get_running_loop()
        async with site({"/": ended}) as server:
            factory = guarded_mcp_client_factory(server.url, trusted=server.trusted)
            async with factory() as client:
                begun = loop.time()
                for _ in range(7):
                    await client.get(server.url)
        assert loop.time() - begun >= 0.4


class TestEndingASession:
    """What is asked of a server last, when nobody waits for it any more."""

    @pytest.mark.parametrize("content_type", ["text/plain", "text/event-stream"])
    async def test_takes_no_longer_than_a_moment(
        self, content_type: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def drip(writer: asyncio.StreamWriter) -> None:
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n".encode())
            while True:
                writer.write(b".")
                await writer.drain()
                await asyncio.sleep(0.01)

        monkeypatch.setattr("app.outbound.mcp_client.CLOSING", Bounds(1000, 0.1))
        async with site({"/": drip}) as server:
            factory = guarded_mcp_client_factory(server.url, trusted=server.trusted)
            async with factory() as client:
                with pytest.raises(TimedOut):
                    await client.delete(server.url)
            await asyncio.wait_for(server.left.wait(), 60)

    async def test_is_read_no_further_than_a_little(self) -> None:
        endless = answer(bytes(100_000), Content_Type="text/event-stream")
        async with site({"/": endless}) as server:
            factory = guarded_mcp_client_factory(server.url, trusted=server.trusted)
            async with factory() as client:
                with pytest.raises(AnswerTooLarge):
                    await client.delete(server.url)
