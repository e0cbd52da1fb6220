"""What an authorization server gave for a person, and where it is renewed and taken back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

_LONGEST = 16 * 1024
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_LONGEST_LIFE = 366 * 24 * 3600.0


class UnusableToken(ValueError):
    """What the token endpoint answered is no bearer token."""


@dataclass(frozen=True, slots=True)
class Grant:
    """At whom, as whom and for what a person's authorization was given."""

    issuer: str
    token_endpoint: str
    client_id: str
    auth_method: str
    """How the client proves itself to the endpoints."""
    resource: str
    scope: str | None = None
    revocation_endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """One person's tokens for one server."""

    grant: Grant
    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_in: float | None = None
    """Seconds that the access token lives, told from when it was given; not kept: the row has
    the time."""

    @classmethod
    def given(cls, grant: Grant, answer: Mapping[str, Any]) -> Self:
        """The tokens of a token endpoint's answer.

        Raises:
            UnusableToken: there is none, of another type than Bearer, or not fit for a header.
        """
        if str(answer.get("token_type", "")).lower() != "bearer":
            raise UnusableToken
        scope = answer.get("scope")
        return cls(
            replace(grant, scope=scope if isinstance(scope, str) else grant.scope),
            _token(answer.get("access_token")),
            None if answer.get("refresh_token") is None else _token(answer["refresh_token"]),
            _seconds(answer.get("expires_in")),
        )

    def plain(self) -> bytes:
        """As they are sealed."""
        kept = {"access_token": self.access_token, "refresh_token": self.refresh_token}
        return json.dumps({"grant": asdict(self.grant), **kept}).encode()

    @classmethod
    def read(cls, plain: bytes) -> Self:
        """From what was sealed."""
        kept = json.loads(plain)
        return cls(Grant(**kept["grant"]), kept["access_token"], kept["refresh_token"])

    def headers(self) -> dict[str, str]:
        """What a request to the server carries."""
        return {"Authorization": f"Bearer {self.access_token}"}


def _token(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST or not _VISIBLE.fullmatch(value):
        raise UnusableToken
    return value


def _seconds(value: object) -> float | None:
    """A lifetime; some servers send it as text."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnusableToken
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        raise UnusableToken from None
    if not 0 <= seconds < float("inf"):
        raise UnusableToken
    return min(seconds, _LONGEST_LIFE)
