"""Where the catalogue comes from: a file of the operator's, or an address."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx

from app.models.catalogue.bounded import NotWhole, TooMuch, read_raw, unpacked
from app.models.catalogue.prices import MOST_BYTES, CatalogueInvalid
from app.models.connection import tls

SECONDS = 30.0
"""How long a download may take altogether."""
_STALL_SECONDS = 10.0
_MOST_REDIRECTS = 3
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "stoa"}


class CatalogueUnavailable(Exception):
    """The catalogue could not be read; says how, and nothing of what was answered."""


async def fetch_catalogue(source: str, *, seconds: float = SECONDS) -> bytes:
    """Read the catalogue.

    Raises:
        CatalogueUnavailable: nothing answers, not well, not whole, or not in time.
        CatalogueInvalid: there is too much of it.
    """
    parts = urlsplit(source)
    try:
        if parts.scheme in {"http", "https"}:
            async with asyncio.timeout(seconds):
                return await _download(source)
        path = Path(unquote(parts.path) if parts.scheme == "file" else source)
        return await asyncio.to_thread(_read, path)
    except TooMuch:
        raise CatalogueInvalid from None
    except (OSError, httpx.HTTPError, httpx.InvalidURL, NotWhole) as error:
        raise CatalogueUnavailable(type(error).__name__) from error


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise TooMuch
    return raw


async def _download(url: str) -> bytes:
    # A redirect may lead from http to https, so certificates are checked in any case.
    transport = httpx.AsyncHTTPTransport(verify=tls(), trust_env=False)
    async with (
        httpx.AsyncClient(
            transport=transport,
            trust_env=False,
            timeout=_STALL_SECONDS,
            follow_redirects=True,
            max_redirects=_MOST_REDIRECTS,
            headers=_HEADERS,
            event_hooks={"request": [_StaysSecure(url).check]},
        ) as client,
        client.stream("GET", url) as response,
    ):
        response.raise_for_status()
        raw = await read_raw(response, MOST_BYTES)
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
    return await asyncio.to_thread(unpacked, raw, encoding, MOST_BYTES)


class _StaysSecure:
    """What is asked for by https is not taken from elsewhere."""

    def __init__(self, url: str) -> None:
        self._secure = urlsplit(url).scheme == "https"

    async def check(self, request: httpx.Request) -> None:
        """Refuse a way that leads out of it."""
        if self._secure and request.url.scheme != "https":
            raise httpx.UnsupportedProtocol("a redirect leads from https to http")
