"""The guarded client against real sockets: what it connects to, and how much it takes."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from ipaddress import ip_address
from pathlib import Path

import httpx2
import pytest

from app.outbound import (
    AnswerBroken,
    AnswerTooLarge,
    OutboundError,
    TimedOut,
    Unreachable,
    UrlRefused,
    guarded_client,
    read_bounded,
)
from app.outbound.addresses import Address
from tests.support.sites import Site, answer, certificate, redirect, site

HERE = "127.83.7.11"
"""An address of loopback that a test lets play a public one, on a port that is asked."""
PATIENCE = 60
PORT = 8443
NAME = "shop.stoa.dev"
MANY = 100_000


async def here(_name: str) -> Sequence[Address]:
    return [ip_address(HERE)]


@pytest.fixture
def loopback_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.outbound.guard.is_public", lambda each: str(each) == HERE)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("authority"), NAME)


@pytest.fixture(scope="module")
def trusting(authority: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority)


@pytest.fixture
async def shop(authority: Path) -> AsyncIterator[Site]:
    """A site under the name that its certificate is for."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(authority, authority.with_name("key.pem"))
    async with site({"/": answer(b"wares")}, tls=tls, host=HERE, port=PORT, name=NAME) as served:
        yield served


@pytest.mark.usefixtures("loopback_is_public")
class TestAPublicServer:
    async def test_is_verified_by_its_name_at_the_address_that_was_checked(
        self, shop: Site, trusting: ssl.SSLContext
    ) -> None:
        async with guarded_client(resolve=here, tls=trusting) as client:
            assert (await client.get(shop.url)).text == "wares"
        assert f"Host: {NAME}:{PORT}".lower() in shop.heads[0].lower()

    async def test_with_a_certificate_for_another_name_gets_no_request(
        self, shop: Site, trusting: ssl.SSLContext
    ) -> None:
        async with guarded_client(resolve=here, tls=trusting) as client:
            with pytest.raises(Unreachable):
                await client.get(f"https://other.stoa.dev:{PORT}/")
        assert shop.asked == []

    async def test_with_a_certificate_of_its_own_making_gets_no_request(self, shop: Site) -> None:
        async with guarded_client(resolve=here) as client:
            with pytest.raises(Unreachable):
                await client.get(shop.url)
        assert shop.asked == []


class TestAServerInside:
    @pytest.mark.parametrize("url", [f"https://{NAME}:{PORT}/", f"http://{NAME}/"])
    async def test_behind_a_public_name_is_not_even_connected_to(self, url: str) -> None:
        async with (
            site(host=HERE, port=PORT) as inner,
            guarded_client(https_only=False, resolve=here) as client,
        ):
            with pytest.raises(Unreachable):
                await client.get(url)
        assert inner.connections == 0

    async def test_is_not_reached_by_a_name_that_changes_its_mind(
        self, shop: Site, trusting: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        public = {HERE}
        monkeypatch.setattr("app.outbound.guard.is_public", lambda each: str(each) in public)
        asked = list[str]()

        async def rebound(name: str) -> Sequence[Address]:
            asked.append(name)
            return [ip_address(HERE if len(asked) == 1 else "127.83.7.12")]

        async with (
            site({"/": answer(b"inner")}, host="127.83.7.12", port=PORT) as inner,
            guarded_client(resolve=rebound, tls=trusting) as client,
        ):
            assert (await client.get(shop.url)).text == "wares"
            with pytest.raises(Unreachable):
                await client.get(shop.url)
        assert (inner.connections, len(asked)) == (0, 2)

    async def test_is_refused_by_its_look(self) -> None:
        async with site() as inner, guarded_client(https_only=False) as client:
            with pytest.raises(UrlRefused):
                await client.get(inner.url)
        assert inner.connections == 0

    async def test_is_not_reached_through_a_redirect(self) -> None:
        async with site() as inner, site() as outer:
            outer.replies["/"] = redirect(inner.url)
            async with guarded_client(trusted=outer.trusted) as client:
                answered = await client.get(outer.url)
        assert (answered.status_code, inner.connections) == (302, 0)

    async def test_is_not_reached_by_a_caller_who_follows_redirects(self) -> None:
        async with site() as inner, site() as outer:
            outer.replies["/"] = redirect(inner.url)
            async with guarded_client(trusted=outer.trusted) as client:
                with pytest.raises(UrlRefused):
                    await client.get(outer.url, follow_redirects=True)
        assert inner.connections == 0


class TestTheClient:
    async def test_asks_directly_whatever_proxy_the_environment_names(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with site({"/": answer(b"direct")}) as asked, site() as proxy:
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"):
                monkeypatch.setenv(name, proxy.url)
            async with guarded_client(trusted=asked.trusted) as client:
                assert (await client.get(asked.url)).text == "direct"
        assert proxy.connections == 0

    async def test_takes_no_password_from_the_environment(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "netrc").write_text("default login me password canary\n")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        async with (
            site({"/": answer(b"")}) as asked,
            guarded_client(trusted=asked.trusted) as client,
        ):
            await client.get(asked.url)
        assert "authorization" not in asked.heads[0].lower()

    async def test_keeps_no_cookie(self) -> None:
        cookie = {"Set_Cookie": "visitor=1; Path=/"}
        async with (
            site({"/": answer(b"", **cookie)}) as asked,
            guarded_client(trusted=asked.trusted) as client,
        ):
            await client.get(asked.url)
            await client.get(asked.url)
        assert ["cookie" in head.lower() for head in asked.heads] == [False, False]

    async def test_leaves_no_connection_open(self) -> None:
        kept = answer(b"kept", Connection="keep-alive")

        async def keep(writer: asyncio.StreamWriter) -> None:
            writer.write(kept)
            while True:  # until the other side has gone
                await writer.drain()
                await asyncio.sleep(0.005)
                writer.write(b" ")

        async with site({"/": keep}) as asked:
            async with guarded_client(trusted=asked.trusted) as client:
                await client.get(asked.url)
                assert not asked.left.is_set()
            await asyncio.wait_for(asked.left.wait(), PATIENCE)


def endless(head: bytes, piece: bytes, pause: float = 0) -> Callable[..., Awaitable[None]]:
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return write


async def read_through(response: httpx2.Response, sizes: set[int]) -> None:
    async for piece in response.aiter_raw():
        sizes.add(len(piece))


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
BOMB = gzip.compress(bytes(16 * 1024 * 1024))


class TestAnAnswer:
    async def test_is_unpacked(self) -> None:
        packed = answer(gzip.compress(b"unpacked"), Content_Encoding="gzip")
        async with site({"/": packed}) as asked, guarded_client(trusted=asked.trusted) as client:
            response = await client.get(asked.url)
        assert response.text == "unpacked"
        assert "content-encoding" not in response.headers

    @pytest.mark.parametrize(
        ("reply", "error"),
        [
            (answer(bytes(MANY + 1)), AnswerTooLarge),
            (endless(HEAD, bytes(10_000)), AnswerTooLarge),
            (answer(BOMB, Content_Encoding="gzip"), AnswerTooLarge),
            (b"HTTP/1.1 200 OK\r\nno header\r\n\r\n", AnswerBroken),
            (endless(b"HTTP/1.1 200 OK\r\n", b"X-Filler: " + b"x" * 900 + b"\r\n"), AnswerBroken),
            (answer(b"x", Content_Encoding="br"), AnswerBroken),
            (answer(b"no gzip", Content_Encoding="gzip"), AnswerBroken),
            (answer(gzip.compress(b"x" * 99)[:-9], Content_Encoding="gzip"), AnswerBroken),
            (answer(b"short", Content_Length="9"), AnswerBroken),
            (answer(b"", status="302 Found", Location="http://a:b/"), AnswerBroken),
            (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", AnswerBroken),
            (b"", AnswerBroken),
        ],
        ids=[
            "long",
            "endless",
            "a little that unfolds",
            "strange headers",
            "endless headers",
            "packed in another way",
            "not packed",
            "packed and cut",
            "cut",
            "leading to nonsense",
            "of another protocol",
            "of nothing",
        ],
    )
    async def test_is_taken_within_bounds(
        self, reply: bytes | Callable[..., Awaitable[None]], error: type[OutboundError]
    ) -> None:
        async with (
            site({"/": reply}) as asked,
            guarded_client(trusted=asked.trusted, answer_bytes=MANY) as client,
        ):
            with pytest.raises(error) as failure:
                await client.get(asked.url)
            assert "127.0.0.1" not in str(failure.value)
            await asyncio.wait_for(asked.left.wait(), PATIENCE)

    @pytest.mark.parametrize(
        "reply",
        [
            endless(HEAD, b".", 0.01),
            endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.01),
            endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.01),
        ],
        ids=["body", "beginnings", "headers"],
    )
    async def test_that_drips_without_ever_pausing_for_long_is_left(
        self, reply: Callable[..., Awaitable[None]]
    ) -> None:
        async with (
            site({"/": reply}) as asked,
            guarded_client(trusted=asked.trusted, seconds=0.2) as client,
        ):
            with pytest.raises(TimedOut):
                await client.get(asked.url)
            await asyncio.wait_for(asked.left.wait(), PATIENCE)

    async def test_that_unfolds_is_never_in_memory_as_a_whole(self) -> None:
        sizes = set[int]()
        packed = answer(BOMB, Content_Encoding="gzip")
        async with (
            site({"/": packed}) as asked,
            guarded_client(trusted=asked.trusted, answer_bytes=MANY) as client,
            client.stream("GET", asked.url) as response,
        ):
            with pytest.raises(AnswerTooLarge):
                await read_through(response, sizes)
        assert 0 < max(sizes) <= 64 * 1024


class TestReadingABodyOfAnotherClient:
    @pytest.mark.parametrize(
        ("reply", "seconds", "error"),
        [
            (endless(HEAD, bytes(10_000)), 20, AnswerTooLarge),
            (endless(HEAD, b".", 0.01), 0.1, TimedOut),
            (answer(b"short", Content_Length="9"), 20, AnswerBroken),
        ],
        ids=["endless", "dripping", "cut"],
    )
    async def test_is_bounded_too(
        self,
        reply: bytes | Callable[..., Awaitable[None]],
        seconds: float,
        error: type[OutboundError],
    ) -> None:
        async with site({"/": reply}) as asked, httpx2.AsyncClient(trust_env=False) as client:
            response = await client.send(client.build_request("GET", asked.url), stream=True)
            with pytest.raises(error):
                await read_bounded(response, MANY, seconds)
            await asyncio.wait_for(asked.left.wait(), PATIENCE)

    async def test_is_whole(self) -> None:
        async with (
            site({"/": answer(b"whole")}) as asked,
            httpx2.AsyncClient(trust_env=False) as client,
        ):
            response = await client.send(client.build_request("GET", asked.url), stream=True)
            assert await read_bounded(response, 5, 5) == b"whole"
