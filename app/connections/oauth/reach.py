"""Which addresses may be asked for one server's authorization.

What a server says about its authorization is somebody's text: whoever writes it chooses where we
connect to. So every address must be public and under https, except at origins that the operator
vouches for by having written them into the catalogue.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from urllib.parse import urlsplit

from app.connections.oauth.errors import OAuthAddressRefused
from app.outbound.errors import UrlRefused
from app.outbound.urls import Origin, check_url
from app.tools.servers import HttpTransport, McpServer

ANSWER_BYTES = 256 * 1024
REQUEST_SECONDS = 10.0


def trusted_origins(server: McpServer) -> frozenset[str]:
    """The origins that the operator vouches for; none, where a user added the server."""
    if server.is_own or not isinstance(server.transport, HttpTransport):
        return frozenset()
    rule = server.credential
    named = [server.transport.url, *rule.origins, *([rule.issuer] if rule.issuer else [])]
    return frozenset(str(Origin.of(url)) for url in named)


def check_address(url: str, trusted: AbstractSet[str]) -> str:
    """Return a URL that may be asked; what its host's name leads to is checked at connecting.

    Raises:
        OAuthAddressRefused: it is not of the public internet, or has a fragment.
    """
    try:
        check_url(url, trusted=trusted)
        has_fragment = bool(urlsplit(url).fragment)
    except (UrlRefused, ValueError):
        raise OAuthAddressRefused from None
    if has_fragment:
        raise OAuthAddressRefused
    return url
