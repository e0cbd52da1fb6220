"""The issuer's keys, remembered: rotation, outages, and one fetch for all who wait."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

import structlog

from tenancy.errors import IdentityUnavailable
from tenancy.identity.fetch import JwksFetcher, JwksFetchFailed
from tenancy.identity.keys import PublicKeys, UnusableKeyDocument, parse_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from joserfc.jwk import Key

    from tenancy.identity.settings import JwtIdentitySettings

_RETRY_WITH_KEYS = 30.0
_RETRY_WITHOUT_KEYS = 1.0

log = structlog.get_logger(__name__)


class JwksCache:
    """Keeps an issuer's keys for one event loop."""

    def __init__(
        self, settings: JwtIdentitySettings, fetcher: JwksFetcher, clock: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._fetcher = fetcher
        self._clock = clock
        self._keys: PublicKeys = {}
        self._fetched_at = -math.inf
        self._failed_at = -math.inf
        self._searched_at = -math.inf
        self._fetches = 0
        self._in_flight: asyncio.Task[None] | None = None

    async def find(self, kid: str) -> tuple[Key, ...]:
        """Return the keys with this id; none if the issuer doesn't know it.

        Raises:
            IdentityUnavailable: the issuer cannot be asked, and what it said is too old.
        """
        asked = self._fetches
        if self._age() >= self._settings.keys_fresh_for and self._may_retry():
            await self._refresh()
        if self._age() >= self._settings.keys_usable_for:
            raise IdentityUnavailable
        if kid not in self._keys and self._fetches == asked:
            await self._search()
        return self._keys.get(kid, ())

    async def aclose(self) -> None:
        """Give up a fetch that is under way."""
        if self._in_flight is not None:
            self._in_flight.cancel()
            await asyncio.wait({self._in_flight})

    def _age(self) -> float:
        return self._clock() - self._fetched_at

    def _may_retry(self) -> bool:
        usable = self._age() < self._settings.keys_usable_for
        pause = _RETRY_WITH_KEYS if usable else _RETRY_WITHOUT_KEYS
        return self._in_flight is not None or self._clock() - self._failed_at >= pause

    async def _search(self) -> None:
        """Ask the issuer for a key it may have added.

        A made-up ``kid`` costs its sender nothing, so it must not cost the issuer much.
        """
        if self._in_flight is None:
            if self._clock() - self._searched_at < self._settings.unknown_kid_every:
                return
            self._searched_at = self._clock()
        await self._refresh()

    async def _refresh(self) -> None:
        """Join the fetch in flight, or start one. Who is cancelled leaves the others waiting."""
        if self._in_flight is None:
            self._in_flight = asyncio.create_task(self._fetch(), name="fetch issuer's keys")
            self._in_flight.add_done_callback(self._landed)
        fetch = self._in_flight
        await asyncio.wait({fetch})
        if fetch.cancelled():
            raise IdentityUnavailable
        fetch.result()

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._in_flight = None
        self._fetches += 1
        if not task.cancelled():
            task.exception()  # Seen here too, for when every waiter has gone.

    async def _fetch(self) -> None:
        try:
            self._keys = parse_keys(await self._fetcher.fetch())
        except (JwksFetchFailed, UnusableKeyDocument) as error:
            self._failed_at = self._clock()
            log.warning("the issuer's keys could not be refreshed", why=str(error))
        else:
            self._fetched_at = self._clock()
            self._failed_at = -math.inf
