"""Keeps other sites' pages from acting with a person's session at the gateway.

The gateway may keep its session in a cookie, which a browser also sends for a request that
another site's page makes. Browsers say where a request comes from; programs don't, and may act.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.api.problems import problem_response
from app.api.refusals import ForeignOrigin

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Receive, Scope, Send

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITE = frozenset({"same-origin", "none"})


class OriginGuard:
    """Refuses requests that change something and come from a page of a foreign origin."""

    def __init__(self, app: ASGIApp, allowed: Collection[str]) -> None:
        self._app = app
        self._allowed = frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] == "http" and _changes_something(scope) and self._is_foreign(scope):
            refusal = problem_response(scope, 403, ForeignOrigin.code, ForeignOrigin.message)
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_foreign(self, scope: Scope) -> bool:
        headers: dict[bytes, str] = {
            name: value.decode("latin-1") for name, value in scope["headers"]
        }
        origin = headers.get(b"origin")
        if origin in self._allowed:
            return False
        site = headers.get(b"sec-fetch-site")
        if site is not None:
            return site not in _OWN_SITE
        # Older browsers name the origin only; its host is then the one they were asking.
        return origin is not None and _host(origin) != headers.get(b"host")


def _changes_something(scope: Scope) -> bool:
    # A reader may ask for the run to end with it.
    return scope["method"] not in _SAFE_METHODS or b"cancel_on_disconnect" in scope["query_string"]


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None
