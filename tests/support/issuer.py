"""An identity provider for tests: a key of its own, published, and assertions signed with it."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, Self
from uuid import uuid4

from joserfc import jwt
from joserfc.jwk import ECKey

AUDIENCE = "stoa-tests"
ALGORITHM = "ES256"


class TestIssuer:
    """Signs assertions and serves its public keys on loopback.

    Use it as ``async with TestIssuer() as issuer``.
    """

    __test__ = False

    def __init__(self) -> None:
        self.key = ECKey.generate_key("P-256", {"kid": uuid4().hex, "use": "sig", "alg": ALGORITHM})
        self.url = ""
        self._server: asyncio.Server | None = None

    @property
    def jwks_url(self) -> str:
        """Where the public keys are."""
        return f"{self.url}/jwks.json"

    async def __aenter__(self) -> Self:
        """Begin to serve the keys."""
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop serving."""
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    def assertion(self, subject: str, *, lifetime: float = 3600, **claims: Any) -> str:
        """Sign an assertion about a person; ``claims`` replace or add."""
        now = int(time.time())
        payload = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": subject,
            "iat": now,
            "exp": int(now + lifetime),
            "name": subject.title(),
            **claims,
        }
        header = {"alg": ALGORITHM, "kid": self.key.kid}
        return jwt.encode(header, payload, self.key, algorithms=[ALGORITHM])

    def headers(self, subject: str, **claims: Any) -> dict[str, str]:
        """The header with which a gateway hands a request on."""
        return {"Authorization": f"Bearer {self.assertion(subject, **claims)}"}

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = json.dumps({"keys": [self.key.as_dict(private=False)]}).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        await writer.drain()
        writer.close()
