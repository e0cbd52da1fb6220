"""An issuer of assertions in memory: it signs, publishes, rotates, fails and waits on command."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field
from typing import Any

from joserfc import jws
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

from tenancy.identity import JwksFetchFailed, JwtIdentitySettings

NOW = 1_800_000_000
ISSUER = "https://gateway.example"
AUDIENCE = "stoa"
SETTINGS = JwtIdentitySettings(
    header="Authorization", issuer=ISSUER, audience=AUDIENCE, jwks_url=ISSUER + "/jwks.json"
)


def new_key(kid: str, kind: str = "EC") -> Key:
    """Return a private key with an id."""
    if kind == "RSA":
        return RSAKey.generate_key(2048, {"kid": kid})
    if kind == "OKP":
        return OKPKey.generate_key("Ed25519", {"kid": kid})
    return ECKey.generate_key("P-256", {"kid": kid})


class Clock:
    """A clock that moves when told to."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def claims(**changes: object) -> dict[str, Any]:
    """Return good claims with changes; a claim that is changed to ``...`` is left out."""
    good: dict[str, object] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ada",
        "iat": NOW - 10,
        "exp": NOW + 290,
        "name": "Ada Lovelace",
        "email": "ada@example.com",
    }
    return {name: value for name, value in (good | changes).items() if value is not ...}


def sign(key: Key, payload: object, alg: str = "ES256", **header: object) -> str:
    """Sign anything, with any header: what an issuer gone wrong could send.

    Without the library's own checks, so that ours are seen at work.
    """
    protected = {"alg": alg, "kid": key.kid, "typ": "JWT"} | header
    protected = {name: value for name, value in protected.items() if value is not ...}
    content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    signed = f"{b64(json.dumps(protected).encode())}.{b64(content)}"
    signature: bytes = jws.JWSRegistry.algorithms[alg].sign(signed.encode(), key)
    return f"{signed}.{b64(signature)}"


def b64(data: bytes) -> str:
    """Encode as the parts of a token are encoded."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@dataclass
class Issuer:
    """Publishes the public halves of its keys."""

    keys: list[Key] = field(default_factory=lambda: [new_key("first")])
    down: bool = False
    fetches: int = 0
    raw: bytes | None = None
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    def __post_init__(self) -> None:
        self.may_answer.set()

    async def fetch(self) -> bytes:
        """Answer as an issuer's JWKS endpoint would."""
        self.fetches += 1
        self.asked.set()
        await self.may_answer.wait()
        if self.down:
            raise JwksFetchFailed("down")
        if self.raw is not None:
            return self.raw
        return json.dumps({"keys": [key.as_dict(private=False) for key in self.keys]}).encode()

    async def aclose(self) -> None:
        """Note that it was closed."""
        self.closed = True

    def token(self, **changes: object) -> str:
        """Return an assertion signed with the newest key."""
        return sign(self.keys[-1], claims(**changes))


def bearer(token: str) -> list[tuple[bytes, bytes]]:
    """Return the raw headers of a request with this token."""
    return [(b"host", b"stoa.example"), (b"authorization", f"Bearer {token}".encode())]
