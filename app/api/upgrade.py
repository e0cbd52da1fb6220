"""Keeps what follows an offer to switch protocols from being taken for another request.

The HTTP parser takes a request that offers one (or says CONNECT) to end with its headers, and
reads its body as the next request. Behind a gateway that shares connections, that next request
would be answered to somebody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.api.problems import problem_response
from app.api.refusals import MalformedRequest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_BODY_HEADERS = frozenset({b"content-length", b"transfer-encoding"})


class UpgradeGuard:
    """Refuses an offer to switch protocols that has a body, and ends its connection."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] == "http" and _hides_its_body(scope):
            refusal = problem_response(
                scope,
                400,
                MalformedRequest.code,
                "A request with a body cannot switch protocols.",
                headers={"Connection": "close"},
            )
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _hides_its_body(scope: Scope) -> bool:
    names = {name for name, _ in scope["headers"]}
    switches = b"upgrade" in names or scope["method"] == "CONNECT"
    return switches and not names.isdisjoint(_BODY_HEADERS)
