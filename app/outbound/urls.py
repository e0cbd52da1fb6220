"""Which URLs may be asked, by their look alone. Pure: where a name leads is checked later.

Only the plain spelling of an address passes. What is refused here could do no harm, since the
connection checks again; a person is told at once, and what is told is about their text only.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Self

import httpx2

from app.outbound.addresses import is_public
from app.outbound.errors import UrlRefused

LONGEST_URL = 2048
_PORTS = {"https": frozenset({443, 8443}), "http": frozenset({80})}
_DEFAULT_PORTS = {"https": 443, "http": 80}
_LONGEST_NAME = 253
_NAME = re.compile(
    r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+"
    r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"  # no number, whatever base: that would be an address
)
_INNER_NAMES = re.compile(
    r".*\.(?:localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa"
    r"|onion|alt|invalid|test|example|arpa)"
)
_UNPRINTABLE = re.compile(r"[^\x21-\x7e\x80-\U0010ffff]|\\")


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port: what a connection is to."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str | httpx2.URL) -> Self:
        """The origin of a URL.

        Raises:
            UrlRefused: it is not a URL with a host, of http or https.
        """
        parsed = _parse(url)
        port = _DEFAULT_PORTS[parsed.scheme] if parsed.port is None else parsed.port
        return cls(parsed.scheme, parsed.raw_host.decode("ascii"), port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        is_default = self.port == _DEFAULT_PORTS[self.scheme]
        return f"{self.scheme}://{host}" if is_default else f"{self.scheme}://{host}:{self.port}"


def check_url(url: str, *, https_only: bool = True, trusted: AbstractSet[str] = frozenset()) -> str:
    """Return the URL as it is asked, if it looks like one of the public internet.

    ``trusted`` are origins (``https://tools.example.com:9000``) that the operator named, which may
    be anywhere. They never come from a person's text.

    Raises:
        UrlRefused: it is not to be asked; the message says what is wrong with its look.
    """
    parsed = _parse(url)
    if parsed.userinfo:
        raise UrlRefused("The address must not contain a user name or password.")
    origin = Origin.of(parsed)
    if origin not in origins(trusted):
        _check_origin(origin, https_only=https_only)
    return str(parsed.copy_with(fragment=None))


def origins(trusted: AbstractSet[str]) -> frozenset[Origin]:
    """The origins that are written like this."""
    return frozenset(Origin.of(each) for each in trusted)


def _check_origin(origin: Origin, *, https_only: bool) -> None:
    if https_only and origin.scheme != "https":
        raise UrlRefused("The address must begin with https://.")
    if origin.port not in _PORTS[origin.scheme]:
        raise UrlRefused("The address must not name this port.")
    if not _is_public_host(origin.host):
        raise UrlRefused("The address must name a host on the public internet.")


def _is_public_host(host: str) -> bool:
    try:
        return is_public(ip_address(host))
    except ValueError:
        is_name = len(host) <= _LONGEST_NAME and _NAME.fullmatch(host) is not None
        return is_name and _INNER_NAMES.fullmatch(host) is None


def _parse(url: str | httpx2.URL) -> httpx2.URL:
    text = str(url)
    if len(text) > LONGEST_URL:
        raise UrlRefused("The address is too long.")
    if _UNPRINTABLE.search(text):
        raise UrlRefused("The address contains characters that do not belong there.")
    try:
        parsed = httpx2.URL(text)
        host = parsed.raw_host.decode("ascii")
    except (httpx2.InvalidURL, ValueError, UnicodeError):
        raise UrlRefused("This is not an address of the web.") from None
    if parsed.scheme not in _DEFAULT_PORTS:
        raise UrlRefused("The address must begin with https://.")
    if not host:
        raise UrlRefused("The address must name a host.")
    return parsed
