"""The decision about each request and each connection, whatever library makes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from ipaddress import ip_address
from typing import TypeVar

from app.outbound.addresses import Address, is_public
from app.outbound.errors import Unreachable
from app.outbound.resolving import Resolve, resolve
from app.outbound.urls import Origin, check_url, origins

T = TypeVar("T")

CONNECT_SECONDS = 10.0
_ATTEMPT_SECONDS = 4.0
_MOST_ATTEMPTS = 4


class Guard:
    """Lets requests to public addresses through, and to the origins that the operator named.

    A name is resolved once, every address of it is checked, and the connection is made to one of
    these addresses: there is no second look-up that could say something else.
    """

    def __init__(
        self,
        *,
        https_only: bool = True,
        trusted: AbstractSet[str] = frozenset(),
        only: str | None = None,
        resolve: Resolve = resolve,
    ) -> None:
        self._https_only = https_only
        self._trusted = trusted
        self._trusted_hosts = {(each.host, each.port) for each in origins(trusted)}
        self._only = None if only is None else Origin.of(only)
        self._resolve = resolve

    def check(self, url: str) -> None:
        """Check a request before it is sent.

        Raises:
            UrlRefused: it does not look like one to the public internet.
            Unreachable: it is to another origin than the only one that this client is for.
        """
        check_url(url, https_only=self._https_only, trusted=self._trusted)
        if self._only is not None and Origin.of(url) != self._only:
            raise Unreachable

    async def connect(
        self,
        host: str,
        port: int,
        dial: Callable[[str, float], Awaitable[T]],
        failures: tuple[type[Exception], ...],
    ) -> T:
        """Connect to a host by ``dial(address, seconds)``, which raises one of ``failures``.

        Raises:
            Unreachable: it has no address, one that is not public, or none that answers.
        """
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                for address in await self._addresses(host, port):
                    with suppress(*failures):  # the next one may answer
                        return await dial(address, _ATTEMPT_SECONDS)
        except TimeoutError:
            pass
        raise Unreachable from None

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        if (host, port) in self._trusted_hosts:
            return [host]
        addresses = await self._look_up(host)
        if not addresses or not all(map(is_public, addresses)):
            raise Unreachable
        return [str(address) for address in addresses[:_MOST_ATTEMPTS]]

    async def _look_up(self, host: str) -> Sequence[Address]:
        try:
            return [ip_address(host)]
        except ValueError:
            return await self._resolve(host)
