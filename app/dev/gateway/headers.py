"""Which header lines cross the gateway, in each direction."""

from __future__ import annotations

from typing import TypeAlias

Headers: TypeAlias = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_IDENTITY_PREFIXES = (
    b"cf-access-",
    b"x-amzn-oidc-",
    b"x-auth-request-",
    b"x-forwarded-",
    b"x-goog-",
    b"x-pomerium-",
)
_IDENTITY = frozenset({b"authorization", b"forwarded", b"x-real-ip", b"x-remote-user"})


def to_upstream(
    headers: Headers, *, cookie: str, identity_header: str, assertion: str | None
) -> Headers:
    """Return the lines that the service gets: what was sent, less what only we may say.

    Anything by which some gateway vouches for somebody goes, in every spelling, before our own
    assertion is added; so there is exactly one, and it is ours.
    """
    own = _folded(identity_header.encode("ascii"))
    dropped = _HOP_BY_HOP | _named_by_connection(headers)
    kept = [
        (name, value)
        for name, value in _without_cookie(headers, cookie.encode("ascii"))
        if name.lower() not in dropped and not _vouches(_folded(name), own)
    ]
    if any(name.lower() == b"transfer-encoding" for name, _ in headers):
        kept = [(name, value) for name, value in kept if name.lower() != b"content-length"]
    if assertion is not None:
        scheme = "Bearer " if own == b"authorization" else ""
        value = f"{scheme}{assertion}".encode("ascii")
        kept.append((identity_header.lower().encode("ascii"), value))
    return kept


def to_client(headers: Headers, status: int) -> Headers:
    """Return the lines of the service's answer that reach the client."""
    dropped = _HOP_BY_HOP | _named_by_connection(headers)
    if status in {204, 304}:
        dropped |= {b"content-length"}  # Describes a body that isn't sent.
    return [(name.lower(), value) for name, value in headers if name.lower() not in dropped]


def _vouches(name: bytes, own: bytes) -> bool:
    return name == own or name in _IDENTITY or name.startswith(_IDENTITY_PREFIXES)


def _folded(name: bytes) -> bytes:
    return name.lower().replace(b"_", b"-")


def _named_by_connection(headers: Headers) -> frozenset[bytes]:
    named = (value.lower().split(b",") for name, value in headers if name.lower() == b"connection")
    # A client may not have the gateway drop what frames or addresses the request.
    return frozenset(name.strip() for names in named for name in names) - {
        b"host",
        b"content-length",
    }


def _without_cookie(headers: Headers, cookie: bytes) -> Headers:
    kept: Headers = []
    for name, value in headers:
        if name.lower() != b"cookie":
            kept.append((name, value))
            continue
        pairs = [pair.strip() for pair in value.split(b";")]
        others = [pair for pair in pairs if pair and pair.split(b"=")[0].strip() != cookie]
        if others:
            kept.append((name, b"; ".join(others)))
    return kept
