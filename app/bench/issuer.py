"""An issuer of assertions for simulated people: a key, its JWKS on loopback, and tokens."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from joserfc import jwt
from joserfc.jwk import ECKey

if TYPE_CHECKING:
    from collections.abc import Iterator

ISSUER = "https://bench.stoa.localhost"
AUDIENCE = "stoa"
_LIFETIME = 3600


class BenchIssuer:
    """Signs for anybody."""

    def __init__(self) -> None:
        self._key = ECKey.generate_key("P-256", {"kid": "bench", "alg": "ES256", "use": "sig"})

    def headers(self, subject: str) -> dict[str, str]:
        """The header that says a request is this person's."""
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": subject,
            "iat": now,
            "exp": now + _LIFETIME,
        }
        token = jwt.encode({"alg": "ES256", "kid": "bench"}, claims, self._key)
        return {"Authorization": f"Bearer {token}"}

    @contextmanager
    def published(self) -> Iterator[str]:
        """Serve the key set while the block runs; yield its address."""
        body = json.dumps({"keys": [self._key.as_dict(private=False)]}).encode()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, name="jwks")
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/jwks.json"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
