"""How assertions arrive and what they are checked against."""

from __future__ import annotations

import ipaddress
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")


@dataclass(frozen=True, slots=True)
class JwtIdentitySettings:
    """What the ``jwt`` mode needs to know. Times in seconds, sizes in bytes.

    Raises:
        ValueError: one of them cannot be used; the message says which and why.
    """

    header: str
    issuer: str
    audience: str
    jwks_url: str
    ca_file: Path | None = None
    """Certificates that the issuer's is checked against, instead of the public authorities'."""
    admin_claim: str = "groups"
    admin_value: str = "stoa-admins"
    leeway: int = 30
    longest_lifetime: int = 24 * 3600
    largest_token: int = 16 * 1024
    keys_fresh_for: float = 600
    keys_usable_for: float = 2 * 3600
    """How old keys may become while the issuer is down. After that nobody is let in."""
    unknown_kid_every: float = 30
    """How often a ``kid`` that nobody knows may send us to the issuer."""

    def __post_init__(self) -> None:
        """Refuse what would let anybody in, or nobody."""
        if not _HEADER_NAME.fullmatch(self.header):
            raise ValueError("The identity header must be the name of an HTTP header.")
        for name in ("issuer", "audience", "admin_claim", "admin_value"):
            if not getattr(self, name).strip():
                raise ValueError(f"The identity {name} must not be empty.")
        _check_jwks_url(self.jwks_url)
        if self.ca_file is not None:
            _check_ca_file(self.ca_file)


def _check_jwks_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.username or parts.password or not parts.hostname:
        raise ValueError("The JWKS address must be a URL with a host and without credentials.")
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname)):
        return
    raise ValueError("The JWKS address must be https, or http on loopback.")


def _check_ca_file(path: Path) -> None:
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:
        raise ValueError("The file of CA certificates cannot be read as PEM.") from error


def is_loopback(host: str) -> bool:
    """Say whether a host name or address means this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
