"""One request and its answer under a guard and within bounds."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TypeVar

import httpx2

from app.outbound.bodies import Bounds, bounded
from app.outbound.errors import AnswerBroken, AnswerTooLarge, TimedOut, Unreachable
from app.outbound.guard import Guard

R = TypeVar("R")

_STREAM = "text/event-stream"
_PACKED = frozenset({"content-encoding", "content-length"})


@contextmanager
def _translated() -> Iterator[None]:
    """Raise ours instead of the library's errors, which say something of addresses."""
    try:
        yield
    except (httpx2.ConnectError, httpx2.ConnectTimeout):
        raise Unreachable from None
    except httpx2.TimeoutException:
        raise TimedOut from None
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL):
        raise AnswerBroken from None


class Exchange:
    """One request, from the moment it is to be sent."""

    def __init__(self, guard: Guard, bounds: Bounds) -> None:
        self._guard = guard
        self._bounds = bounds
        self._deadline = (
            None if bounds.seconds is None else asyncio.get_running_loop().time() + bounds.seconds
        )

    async def head(self, url: str, send: Callable[[], Awaitable[R]]) -> R:
        """Send it and return the answer's beginning.

        Raises:
            UrlRefused: it is not to be sent.
            OutboundError: there is no answer.
        """
        self._guard.check(url)
        try:
            async with asyncio.timeout_at(self._deadline):
                with _translated():
                    return await send()
        except TimeoutError:
            raise TimedOut from None

    async def body(
        self, pieces: AsyncIterator[bytes], headers: Mapping[str, str], *, is_success: bool
    ) -> AsyncIterator[bytes]:
        """The answer's body, unpacked, within the bounds.

        Raises:
            OutboundError: it breaks off, is too long, or takes too long.
        """
        is_stream = is_success and headers.get("content-type", "").lower().startswith(_STREAM)
        is_free = self._bounds.is_stream_free and is_stream
        most = None if is_free else self._bounds.answer_bytes
        announced = headers.get("content-length", "")
        if most is not None and announced.isdecimal() and int(announced) > most:
            raise AnswerTooLarge
        body = bounded(
            pieces,
            encoding=headers.get("content-encoding", ""),
            answer_bytes=most,
            deadline=None if is_free else self._deadline,
        )
        with _translated():
            async for piece in body:
                yield piece


def unpacked_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """An answer's headers once its body is unpacked."""
    return [each for each in headers if each[0].decode("latin-1").lower() not in _PACKED]


def no_cookies() -> CookieJar:
    """A jar that nothing goes into: a client keeps nothing of one answer for the next request."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))


@lru_cache(maxsize=1)
def public_tls() -> ssl.SSLContext:
    """The system's authorities. One for all: to make it costs 20 ms and more."""
    return ssl.create_default_context()
