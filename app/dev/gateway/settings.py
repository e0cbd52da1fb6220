"""Where the gateway listens, what it stands in front of, and what it signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.dev.errors import DevelopmentError
from app.dev.gateway.loopback import is_loopback

if TYPE_CHECKING:
    from pathlib import Path

JWKS_PATH = "/.well-known/jwks.json"


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What the development gateway needs to know.

    Raises:
        DevelopmentError: it would listen beyond this machine, or has nothing to stand before.
    """

    upstream: str
    """URL of the service, without a path."""
    key_file: Path
    """Where the signing key is kept, so that a restart keeps people signed in."""
    audience: str
    header: str = "Authorization"
    """The header in which the service expects the assertion."""
    host: str = "127.0.0.1"
    port: int = 8000
    issuer: str | None = None
    """``iss`` of the assertions; by default the gateway's own URL. People are known by issuer
    and name, so a port that changes between starts makes everybody somebody new."""

    def __post_init__(self) -> None:
        """Refuse to let strangers in under any name they like."""
        if not is_loopback(self.host):
            raise DevelopmentError(
                f"The development gateway lets anybody in, so it cannot listen on {self.host}."
                " Use 127.0.0.1, and a real gateway to serve other machines."
            )
        upstream = urlsplit(self.upstream)
        if upstream.scheme not in {"http", "https"} or not upstream.hostname:
            raise DevelopmentError("The gateway's upstream must be an http or https URL.")
        if upstream.path.strip("/") or upstream.query:
            raise DevelopmentError("The gateway's upstream must be a URL without a path.")

    @property
    def url(self) -> str:
        """The gateway's own address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def jwks_url(self) -> str:
        """Where the service finds the key that verifies the assertions."""
        return self.url + JWKS_PATH

    @property
    def issuer_name(self) -> str:
        """The ``iss`` of every assertion."""
        return self.issuer or self.url
