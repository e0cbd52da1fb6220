"""Whether a model server could answer now."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import orjson

from app.models.catalogue.bounded import read_raw
from app.models.catalogue.served import MOST_BYTES
from app.models.connection import build_transport
from app.sharing import full_name

if TYPE_CHECKING:
    from tenancy.scheduler.components import PoolFailure

PATIENCE_SECONDS = 10.0
"""A server that works, however hard, says within this time what it has."""
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}


@dataclass(frozen=True)
class PoolHealth:
    """What a probe found."""

    reachable: bool
    model_present: bool

    @property
    def ready(self) -> bool:
        """Whether a model call has a chance."""
        return self.failure is None

    @property
    def failure(self) -> PoolFailure | None:
        """What speaks against it, as a code."""
        if not self.reachable:
            return "unreachable"
        return None if self.model_present else "model_missing"


async def probe(url: str, model: str, *, seconds: float = 2.0) -> PoolHealth:
    """Ask a model server what it has. Never raises, and takes no longer than it is given."""
    try:
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(
                transport=build_transport(url), trust_env=False, timeout=seconds, headers=_HEADERS
            ) as client,
            client.stream("GET", f"{url.rstrip('/')}/api/tags") as response,
        ):
            response.raise_for_status()
            said = orjson.loads(await read_raw(response, MOST_BYTES))
            names = [each["name"] for each in said["models"]]
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError, KeyError, TypeError):
        return PoolHealth(reachable=False, model_present=False)
    return PoolHealth(reachable=True, model_present=full_name(model) in names)


async def lasting_failure(url: str, model: str) -> PoolFailure | None:
    """What speaks against a model server, asked once more and waited for long: it may be busy."""
    if (await probe(url, model)).ready:
        return None
    return (await probe(url, model, seconds=PATIENCE_SECONDS)).failure
