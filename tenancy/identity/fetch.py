"""Fetch an issuer's published keys over HTTP, trusting nothing on the way."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Protocol

import httpx

_SECONDS = 5.0
_LARGEST_DOCUMENT = 256 * 1024


class JwksFetchFailed(Exception):
    """The issuer's key document could not be had. The message says why, for the log."""


class JwksFetcher(Protocol):
    """Where the issuer's key document comes from."""

    async def fetch(self) -> bytes:
        """Return the document's bytes, or raise :class:`JwksFetchFailed`."""
        ...

    async def aclose(self) -> None:
        """Close what is open."""
        ...


class HttpJwksFetcher:
    """Fetches the document from one URL.

    No redirects, no proxies from the environment, no compression (a small answer could unfold
    into a large one), a bounded size, and a bounded time for all of it.
    """

    def __init__(
        self,
        url: str,
        *,
        seconds: float = _SECONDS,
        largest: int = _LARGEST_DOCUMENT,
        ca_file: Path | None = None,
    ) -> None:
        self._url = httpx.URL(url)
        self._seconds = seconds
        self._largest = largest
        self._client = httpx.AsyncClient(
            verify=True if ca_file is None else ssl.create_default_context(cafile=ca_file),
            trust_env=False,
            follow_redirects=False,
            timeout=seconds,
        )

    async def fetch(self) -> bytes:
        """Return the document's bytes.

        Raises:
            JwksFetchFailed: no answer in time, or not one to be used.
        """
        try:
            async with asyncio.timeout(self._seconds):
                return await self._read()
        except TimeoutError as error:
            raise JwksFetchFailed("the issuer did not answer in time") from error
        except httpx.HTTPError as error:
            raise JwksFetchFailed(type(error).__name__) from error

    async def _read(self) -> bytes:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        async with self._client.stream("GET", self._url, headers=headers) as response:
            if response.status_code != httpx.codes.OK:
                raise JwksFetchFailed(f"the issuer answered {response.status_code}")
            if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise JwksFetchFailed("the issuer compressed its answer")
            document = bytearray()
            async for chunk in response.aiter_raw():
                document += chunk
                if len(document) > self._largest:
                    raise JwksFetchFailed("the issuer's key document is too large")
        return bytes(document)

    async def aclose(self) -> None:
        """Close the connection to the issuer."""
        await self._client.aclose()
