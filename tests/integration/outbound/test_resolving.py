"""Names are asked of real name servers: every address, in bounded time, and just that name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import dns.asyncresolver
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest

from app.outbound.resolving import resolve_by

Answer = Callable[[dns.message.QueryMessage], dns.message.Message | None]


class NameServer(asyncio.DatagramProtocol):
    """Answers over UDP with what a function says."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked = set[str]()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        query = dns.message.from_wire(data)
        assert isinstance(query, dns.message.QueryMessage)
        self.asked.add(query.question[0].name.to_text())
        answer = self._answer(query)
        if answer is not None:
            self._transport.sendto(answer.to_wire(), addr)


@asynccontextmanager
async def name_server(
    answer: Answer,
) -> AsyncIterator[tuple[NameServer, dns.asyncresolver.Resolver]]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(
        lambda: NameServer(answer), local_addr=("127.0.0.1", 0)
    )
    resolver = dns.asyncresolver.Resolver(configure=False)
    resolver.nameservers = ["127.0.0.1"]
    resolver.port = transport.get_extra_info("sockname")[1]
    resolver.search = [dns.name.from_text("inner.corp")]
    try:
        yield server, resolver
    finally:
        transport.close()


def records(**found: list[str]) -> Answer:
    """These records for any name, by type."""

    def answer(query: dns.message.QueryMessage) -> dns.message.Message:
        response = dns.message.make_response(query)
        asked = query.question[0]
        values = found.get(dns.rdatatype.to_text(asked.rdtype), [])
        if values:
            kind = dns.rdatatype.to_text(asked.rdtype)
            response.answer.append(dns.rrset.from_text(asked.name, 1, "IN", kind, *values))
        return response

    return answer


def failing(code: dns.rcode.Rcode) -> Answer:
    def answer(query: dns.message.QueryMessage) -> dns.message.Message:
        response = dns.message.make_response(query)
        response.set_rcode(code)
        return response

    return answer


class TestAName:
    async def test_has_all_its_addresses_of_both_versions(self) -> None:
        both = records(A=["93.184.215.14", "10.0.0.1"], AAAA=["2606:4700::1111", "::1"])
        async with name_server(both) as (_, resolver):
            found = await resolve_by(resolver, "stoa.dev")
        assert sorted(map(str, found)) == ["10.0.0.1", "2606:4700::1111", "93.184.215.14", "::1"]

    async def test_has_all_its_addresses_however_many_it_is_given(self) -> None:
        many = [f"93.184.215.{number}" for number in range(90)] + ["127.0.0.1"]
        async with name_server(records(A=many)) as (_, resolver):
            resolver.use_edns(0, 0, 4096)
            found = await resolve_by(resolver, "stoa.dev")
        assert "127.0.0.1" in map(str, found)

    async def test_of_one_version_only_has_these(self) -> None:
        async with name_server(records(A=["93.184.215.14"])) as (_, resolver):
            assert list(map(str, await resolve_by(resolver, "stoa.dev"))) == ["93.184.215.14"]

    async def test_is_never_asked_for_within_the_operators_own_domain(self) -> None:
        async with name_server(failing(dns.rcode.NXDOMAIN)) as (server, resolver):
            assert await resolve_by(resolver, "wiki.dev") == []
        assert server.asked == {"wiki.dev."}

    @pytest.mark.parametrize(
        "answer",
        [failing(dns.rcode.NXDOMAIN), failing(dns.rcode.SERVFAIL), records(), lambda _: None],
        ids=["unknown", "failing", "without an address", "unanswered"],
    )
    async def test_that_nobody_knows_has_none_before_long(
        self, answer: Answer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.outbound.resolving.SECONDS", 0.2)
        async with name_server(answer) as (_, resolver):
            assert await resolve_by(resolver, "stoa.dev") == []

    @pytest.mark.parametrize("name", ["a" * 64 + ".dev", "a..dev", "a." * 130 + "dev"])
    async def test_that_is_none_has_none(self, name: str) -> None:
        async with name_server(records(A=["93.184.215.14"])) as (server, resolver):
            assert await resolve_by(resolver, name) == []
        assert server.asked == set()
