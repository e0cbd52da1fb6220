"""Fetching an issuer's keys over a real socket, from issuers that misbehave."""

from __future__ import annotations

import asyncio
import gzip
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tenancy.identity import HttpJwksFetcher, JwksFetchFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

DOCUMENT = b'{"keys": []}'


class Server:
    """A socket that answers each connection with the same bytes."""

    def __init__(self, answer: bytes, *, then_wait: bool = False) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.url = ""
        self._answer = answer
        self._then_wait = then_wait

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self._answer)
        try:
            await writer.drain()
            if self._then_wait:
                await reader.read()
        except ConnectionError:
            pass
        writer.close()


@asynccontextmanager
async def serving(answer: bytes, *, then_wait: bool = False) -> AsyncIterator[Server]:
    server = Server(answer, then_wait=then_wait)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/jwks.json"
    async with listener:
        yield server


def answer(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class TestAnIssuerThatAnswers:
    async def test_is_read(self) -> None:
        async with serving(answer(DOCUMENT)) as server:
            fetcher = HttpJwksFetcher(server.url)
            assert await fetcher.fetch() == DOCUMENT
            await fetcher.aclose()

    async def test_is_asked_directly_whatever_proxy_the_environment_names(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
        async with serving(answer(DOCUMENT)) as server:
            fetcher = HttpJwksFetcher(server.url)
            assert await fetcher.fetch() == DOCUMENT
            await fetcher.aclose()


class TestAnIssuerThatMisbehaves:
    @pytest.mark.parametrize(
        "reply",
        [
            answer(b"", "302 Found", Location="{other}"),
            answer(b"", "307 Temporary Redirect", Location="{other}"),
            answer(DOCUMENT, "404 Not Found"),
            answer(DOCUMENT, "500 Internal Server Error"),
            answer(b"x" * 2000),
            answer(gzip.compress(b" " * 10_000_000), Content_Encoding="gzip"),
            answer(DOCUMENT)[:-3],
            b"not http at all\r\n\r\n",
            b"",
        ],
        ids=[
            "redirect",
            "redirect-307",
            "404",
            "500",
            "too-large",
            "compressed",
            "cut-off",
            "garbage",
            "closed",
        ],
    )
    async def test_is_not_believed(self, reply: bytes) -> None:
        async with serving(answer(DOCUMENT)) as other:
            reply = reply.replace(b"{other}", other.url.encode())
            async with serving(reply) as server:
                fetcher = HttpJwksFetcher(server.url, largest=1000)
                with pytest.raises(JwksFetchFailed):
                    await fetcher.fetch()
                await fetcher.aclose()
            assert other.connections == 0, "a redirect is not followed"

    async def test_is_cut_off_when_it_never_stops(self) -> None:
        endless = (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"3e8\r\n%b\r\n" % (b"x" * 1000) * 100
        )
        async with serving(endless, then_wait=True) as server:
            fetcher = HttpJwksFetcher(server.url, largest=10_000)
            with pytest.raises(JwksFetchFailed, match="too large"):
                await fetcher.fetch()
            await fetcher.aclose()

    @pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
    async def test_is_given_up_when_it_is_silent(self, begun: bytes) -> None:
        async with serving(begun, then_wait=True) as server:
            fetcher = HttpJwksFetcher(server.url, seconds=0.1)
            with pytest.raises(JwksFetchFailed):
                await fetcher.fetch()
            await fetcher.aclose()

    async def test_is_not_there(self, unused_tcp_port_factory: Callable[[], int]) -> None:
        fetcher = HttpJwksFetcher(f"http://127.0.0.1:{unused_tcp_port_factory()}/")
        with pytest.raises(JwksFetchFailed):
            await fetcher.fetch()
        await fetcher.aclose()
