"""The ``jwt`` mode: believe what a gateway signed, and nothing else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tenancy.identity.assertion import check_claims, read_header, verify_signature
from tenancy.identity.claims import to_identity
from tenancy.identity.fetch import HttpJwksFetcher, JwksFetcher
from tenancy.identity.headers import find_token
from tenancy.identity.jwks import JwksCache

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenancy.identity.settings import JwtIdentitySettings
    from tenancy.principal import Identity


class IdentityVerifier:
    """Verifies the assertion that a request carries. One per process and event loop.

    Args:
        settings: where the assertion stands and what it must say.
        fetcher: where the issuer's keys come from; by default the configured URL.
        now: the time of day, in seconds since the epoch.
        clock: a clock that is never set back.
    """

    def __init__(
        self,
        settings: JwtIdentitySettings,
        fetcher: JwksFetcher | None = None,
        *,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._fetcher = fetcher or HttpJwksFetcher(settings.jwks_url, ca_file=settings.ca_file)
        self._keys = JwksCache(settings, self._fetcher, clock)
        self._now = now

    async def verify(self, headers: Sequence[tuple[bytes, bytes]]) -> Identity:
        """Return who sent these raw headers.

        Raises:
            AmbiguousIdentity: more than one line claims to be the assertion.
            IdentityRejected: there is none, or it isn't to be believed.
            IdentityUnavailable: the issuer's keys cannot be had.
        """
        settings = self._settings
        token = find_token(headers, name=settings.header, largest=settings.largest_token)
        header = read_header(token)
        keys = await self._keys.find(header.kid)
        claims = verify_signature(token, header, keys)
        check_claims(claims, settings, self._now())
        return to_identity(claims, settings)

    async def aclose(self) -> None:
        """Close the way to the issuer."""
        await self._keys.aclose()
        await self._fetcher.aclose()
