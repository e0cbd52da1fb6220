"""Everything that isn't the gateway's own: to the service, for those who signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.dev.gateway.headers import to_upstream
from app.dev.gateway.problems import problem
from app.dev.gateway.redirects import sign_in_address

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from app.dev.gateway.passes import Passes
    from app.dev.gateway.signer import Signer
    from app.dev.gateway.upstream import Upstream

_OPEN_PATHS = frozenset({"/ok", "/.well-known/oauth-client.json"})
"""A liveness probe has no name to give, nor has a server that reads which client Stoa is."""


class Proxy:
    """Forwards requests with exactly one fresh assertion each."""

    def __init__(
        self, passes: Passes, signer: Signer, upstream: Upstream, identity_header: str
    ) -> None:
        self._passes = passes
        self._signer = signer
        self._upstream = upstream
        self._identity_header = identity_header

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, or ask for a sign-in."""
        request = Request(scope)
        person = self._passes.person(request)
        if not scope["raw_path"].startswith(b"/"):
            refusal: Response = problem(400, "malformed_request", "The path is malformed.")
            await refusal(scope, receive, send)
            return
        if person is None and request.url.path not in _OPEN_PATHS:
            refusal = _ask_to_sign_in(request)
            await refusal(scope, receive, send)
            return
        headers = to_upstream(
            scope["headers"],
            cookie=self._passes.cookie,
            identity_header=self._identity_header,
            assertion=self._signer.assertion(person) if person else None,
        )
        await self._upstream.forward(scope, receive, send, headers)


def _ask_to_sign_in(request: Request) -> Response:
    """A person is shown the way; a program is told."""
    if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
        address = sign_in_address(_target(request))
        return RedirectResponse(address, 302, headers={"Cache-Control": "no-store"})
    return problem(
        401,
        "unauthenticated",
        "Sign in to use this service.",
        {"WWW-Authenticate": "Bearer"},
    )


def _target(request: Request) -> str:
    path: bytes = request.scope["raw_path"]
    query: bytes = request.scope["query_string"]
    return (path + b"?" + query if query else path).decode("latin-1")
