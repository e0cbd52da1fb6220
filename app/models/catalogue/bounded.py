"""Bodies of answers, read no further than they are wanted, whatever their headers promise."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

_GZIP = 16 + zlib.MAX_WBITS


class TooMuch(ValueError):
    """There is more of it than is read."""


class NotWhole(ValueError):
    """It is cut off, or packed in a way that was not asked for."""


async def read_raw(response: httpx.Response, most: int) -> bytes:
    """The body as it was sent.

    Raises:
        TooMuch: it is larger.
        httpx.TransportError: it does not come to its end.
    """
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_raw():
        size += len(piece)
        if size > most:
            raise TooMuch
        pieces.append(piece)
    return b"".join(pieces)


def unpacked(raw: bytes, encoding: str, most: int) -> bytes:
    """What a body says, of which a little may stand for very much.

    Raises:
        TooMuch: it is larger.
        NotWhole: it is no gzip, or not to its end.
    """
    if encoding in ("", "identity"):
        return raw
    if encoding != "gzip":
        raise NotWhole
    unpacking = zlib.decompressobj(_GZIP)
    try:
        plain = unpacking.decompress(raw, most + 1)
    except zlib.error:
        raise NotWhole from None
    if len(plain) > most:
        raise TooMuch
    if not unpacking.eof:
        raise NotWhole
    return plain
