"""Where a name leads: asked of the system's name servers, without a thread that could hang.

Names are asked as they are: no search list, which would turn a stranger's name into one inside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

import dns.asyncresolver
import dns.exception
import dns.name
import dns.rdatatype
import structlog

from app.outbound.addresses import Address

log = structlog.get_logger(__name__)

Resolve = Callable[[str], Awaitable[Sequence[Address]]]
"""All addresses of a name; empty where there is none."""

SECONDS = 5.0


async def resolve(name: str) -> Sequence[Address]:
    """Every address of a name, those of IPv4 first; empty, where it has none or nobody says."""
    try:
        return await resolve_by(dns.asyncresolver.Resolver(), name)
    except dns.resolver.NoResolverConfiguration:
        log.warning("no name server is configured")
        return ()


async def resolve_by(resolver: dns.asyncresolver.Resolver, name: str) -> Sequence[Address]:
    """The same, by these name servers."""
    kinds = (dns.rdatatype.A, dns.rdatatype.AAAA)
    found = await asyncio.gather(*(_records(resolver, name, kind) for kind in kinds))
    return [address for addresses in found for address in addresses]


async def _records(
    resolver: dns.asyncresolver.Resolver, name: str, kind: dns.rdatatype.RdataType
) -> Sequence[Address]:
    try:
        answer = await resolver.resolve(
            dns.name.from_text(name), kind, lifetime=SECONDS, search=False, raise_on_no_answer=False
        )
    except (dns.exception.DNSException, OSError, ValueError):
        return ()
    return [ip_address(record.address) for record in answer]
