"""What a person may say of a server of their own, and of a key. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.connections.errors import UnacceptableServer
from app.outbound import check_url
from app.tools.names import why_unusable

if TYPE_CHECKING:
    from app.connections.rows import AuthKind

MOST_OWN_SERVERS = 20
LONGEST_KEY = 4096
LONGEST_HEADER = 64
AUTHORIZATION = "Authorization"

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_KEY = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")
_NOT_A_KEYS_HEADER = frozenset(
    {
        *("host", "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("trailer", "transfer-encoding", "upgrade", "content-length", "content-type", "expect"),
        *("content-encoding", "accept", "accept-encoding", "cookie", "origin", "referer", "range"),
        *("user-agent", "via", "forwarded", "last-event-id", "date"),
    }
)
"""What is about a message and its way, and not about who sends it."""
_NOT_A_KEYS_PREFIX = ("proxy-", "sec-", "mcp-", "x-forwarded-", "access-control-")


@dataclass(frozen=True, slots=True)
class OwnServer:
    """A server as a person described it, within bounds."""

    name: str
    url: str
    auth: AuthKind
    header: str | None


def accepted_server(name: str, url: str, auth: AuthKind, header: str | None) -> OwnServer:
    """The server that a person wants to add, if it looks like one that may be.

    Where its name leads is checked with each connection.

    Raises:
        UnacceptableServer: the name or the header cannot be used.
        UrlRefused: the address is not one of the public internet, by https.
    """
    if wrong := why_unusable(name):
        raise UnacceptableServer(f"This name {wrong}.")
    if auth != "key" and header is not None:
        raise UnacceptableServer("Only a key goes into a header.")
    return OwnServer(name, check_url(url), auth, _header(header) if auth == "key" else None)


def accepted_key(key: str) -> str:
    """A key that a person sets, if it can go into a header.

    Raises:
        UnacceptableServer: it cannot. It is not repeated.
    """
    if len(key) > LONGEST_KEY or not _KEY.fullmatch(key):
        raise UnacceptableServer(
            f"A key is at most {LONGEST_KEY} printable ASCII characters, without spaces around it."
        )
    return key


def _header(header: str | None) -> str:
    if header is None:
        return AUTHORIZATION
    lowered = header.lower()
    if (
        len(header) > LONGEST_HEADER
        or not _TOKEN.fullmatch(header)
        or lowered in _NOT_A_KEYS_HEADER
        or lowered.startswith(_NOT_A_KEYS_PREFIX)
    ):
        raise UnacceptableServer("A key cannot go into this header.")
    return header
