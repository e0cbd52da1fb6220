"""Find the one header line that carries the assertion."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tenancy.errors import AmbiguousIdentity, IdentityRejected

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMPACT_JWS = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_BEARER = b"bearer "


def find_token(headers: Sequence[tuple[bytes, bytes]], *, name: str, largest: int) -> str:
    """Return the token in the header ``name``.

    A gateway replaces the header it owns, but a spelling it doesn't know (``X_User`` for
    ``X-User``) may pass it by and be merged with the real one further down. So any twin is an
    attack or a misconfiguration, and neither is answered with a guess.

    Raises:
        AmbiguousIdentity: several lines, or one in another spelling, claim to be the header.
        IdentityRejected: there is none, or what it holds is no token.
    """
    wanted = name.lower().encode("ascii")
    claims = [(key.lower(), value) for key, value in headers if _folded(key) == _folded(wanted)]
    if not claims:
        raise IdentityRejected
    if len(claims) > 1 or claims[0][0] != wanted:
        raise AmbiguousIdentity
    value = claims[0][1].strip(b" \t")
    if wanted == b"authorization":
        value = _bearer(value)
    if len(value) > largest or not _COMPACT_JWS.fullmatch(value):
        raise IdentityRejected
    return value.decode("ascii")


def _folded(name: bytes) -> bytes:
    return name.lower().replace(b"_", b"-")


def _bearer(value: bytes) -> bytes:
    if not value[: len(_BEARER)].lower() == _BEARER:
        raise IdentityRejected
    return value[len(_BEARER) :].strip(b" ")
