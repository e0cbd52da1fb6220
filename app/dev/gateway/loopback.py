"""Keep the gateway on this machine, and other sites' pages out of it."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.dev.gateway.problems import problem

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send


def is_loopback(host: str) -> bool:
    """Say whether a host name or address means this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class LoopbackNames:
    """Answers only requests that were made to a name of this machine.

    A page of another site can point its own name at 127.0.0.1 (DNS rebinding) and would then
    be "same-origin" with the gateway. The ``Host`` header gives it away.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 421."""
        if scope["type"] == "http" and not _names_this_machine(scope):
            refusal = problem(421, "misdirected_request", "This name is not served here.")
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _names_this_machine(scope: Scope) -> bool:
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1:
        return False
    try:
        name = urlsplit("//" + hosts[0].decode("ascii")).hostname
    except ValueError:
        return False
    return name is not None and is_loopback(name)


def is_same_origin(request: Request) -> bool:
    """Say whether a form was sent from the gateway's own page, or by no page at all.

    A site that signs its visitors in under a name of its choosing would read what they write.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("origin")
    return origin is None or origin == f"http://{request.headers['host']}"
