"""An answer's body as it is read: unpacked piece by piece, never longer or later than allowed."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from app.outbound.errors import AnswerBroken, AnswerTooLarge, TimedOut

_PIECE = 64 * 1024
_GZIP = zlib.MAX_WBITS | 16


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one answer may cost."""

    answer_bytes: int | None
    """After unpacking; None, where whoever reads it bounds it."""
    seconds: float | None
    """From the request's beginning to the answer's end."""
    is_stream_free: bool = False
    """Whether a stream of events is not bounded here, but by whoever reads it."""


async def bounded(
    pieces: AsyncIterator[bytes], *, encoding: str, answer_bytes: int | None, deadline: float | None
) -> AsyncIterator[bytes]:
    """The body, unpacked. A little that unfolds into much is noticed before it is in memory.

    ``deadline`` is the event loop's time.

    Raises:
        AnswerTooLarge: there is more of it.
        AnswerBroken: it cannot be unpacked.
        TimedOut: the deadline has passed.
    """
    size = 0
    async with (
        aclosing(_timed(pieces, deadline)) as timed,
        aclosing(_unpacked(timed, encoding)) as unpacked,
    ):
        async for piece in unpacked:
            size += len(piece)
            if answer_bytes is not None and size > answer_bytes:
                raise AnswerTooLarge
            yield piece


async def _timed(
    pieces: AsyncIterator[bytes], deadline: float | None
) -> AsyncGenerator[bytes, None]:
    iterator = aiter(pieces)
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                piece = await anext(iterator)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise TimedOut from None
        yield piece


async def _unpacked(pieces: AsyncIterator[bytes], encoding: str) -> AsyncGenerator[bytes, None]:
    match encoding.strip().lower():
        case "" | "identity":
            async for piece in pieces:
                yield piece
        case "gzip" | "x-gzip":
            async for piece in _gunzipped(pieces):
                yield piece
        case _:
            raise AnswerBroken


async def _gunzipped(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packed = zlib.decompressobj(_GZIP)
    try:
        async for piece in pieces:
            rest = piece
            while rest and not packed.eof:
                unpacked = packed.decompress(rest, _PIECE)
                rest = packed.unconsumed_tail
                if unpacked:
                    yield unpacked
    except zlib.error:
        raise AnswerBroken from None
    if not packed.eof:
        raise AnswerBroken
