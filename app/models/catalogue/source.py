"""Where the catalogue comes from: a file of the operator's, or an address."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx

from app.models.catalogue.prices import MOST_BYTES, CatalogueInvalid
from app.models.connection import build_transport

SECONDS = 30.0
"""How long a download may take altogether."""
_STALL_SECONDS = 10.0
_MOST_REDIRECTS = 3


class CatalogueUnavailable(Exception):
    """The catalogue could not be read; says how, and nothing of what was answered."""


async def fetch_catalogue(source: str, *, seconds: float = SECONDS) -> bytes:
    """Read the catalogue.

    Raises:
        CatalogueUnavailable: nothing answers, not well, not whole, or not in time.
        CatalogueInvalid: there is too much of it.
    """
    parts = urlsplit(source)
    if parts.scheme in {"http", "https"}:
        return await _download(source, seconds)
    path = Path(unquote(parts.path) if parts.scheme == "file" else source)
    return await asyncio.to_thread(_read, path)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise CatalogueUnavailable(error.strerror) from error
    if len(raw) > MOST_BYTES:
        raise CatalogueInvalid
    return raw


async def _download(url: str, seconds: float) -> bytes:
    try:
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(
                transport=build_transport(url),
                trust_env=False,
                timeout=_STALL_SECONDS,
                follow_redirects=True,
                max_redirects=_MOST_REDIRECTS,
                headers={"Accept": "application/json", "User-Agent": "stoa"},
            ) as client,
            client.stream("GET", url) as response,
        ):
            response.raise_for_status()
            return await _whole(response)
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        raise CatalogueUnavailable(type(error).__name__) from error


async def _whole(response: httpx.Response) -> bytes:
    """The body, bounded. One that is cut off raises; so does one shorter than was said."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > MOST_BYTES:
            raise CatalogueInvalid
        pieces.append(piece)
    return b"".join(pieces)
