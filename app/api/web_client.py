"""The browser client: its page under a strict policy, its hashed assets for ever."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Scope

DIST = Path(__file__).resolve().parent.parent / "web" / "dist"

PAGES = (
    *("/", "/chat", "/chat/{path:path}", "/inbox", "/usage", "/tools", "/memory", "/data"),
    *("/leaving/{path:path}", "/queue", "/operator/{path:path}"),
)
"""Where the client has a page; which one, it sees by the address (``app/web/src/App.tsx``)."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'"
)
_PAGE_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cache-Control": "no-store",
}
_NOT_BUILT = (
    "<!doctype html><html lang=en><title>Stoa</title>"
    "<h1>The browser client is not built</h1>"
    "<p>Run <code>make setup</code>. The API is served all the same."
)


class _Assets(StaticFiles):
    """Files whose names carry a hash of their content."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        scope["route"] = _AssetsRoute
        return response


class _AssetsRoute:
    """What the access log calls every asset."""

    path = "/assets/{path}"


def add_web_client(app: FastAPI, dist: Path = DIST) -> None:
    """Serve the client at its pages' addresses, or a page that says how to build it."""

    async def page(_request: Request) -> Response:
        index = dist / "index.html"
        if not index.is_file():
            return HTMLResponse(_NOT_BUILT, headers=_PAGE_HEADERS)
        return FileResponse(index, headers=_PAGE_HEADERS, media_type="text/html")

    for path in PAGES:
        app.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False)
    app.router.routes.append(Mount("/assets", _Assets(directory=dist / "assets", check_dir=False)))
