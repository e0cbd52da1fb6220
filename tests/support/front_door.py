"""A gateway as browsers meet it: it knows people by a cookie, and signs who is asking.

Its address is known before the service starts, so it is what the service is told to be reached at.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.support.issuer import TestIssuer
from tests.support.oauth_server.serving import loopback_socket, served

PATIENCE = 30.0
_PUBLIC = "/.well-known/oauth-client.json"
_HANDED_ON = ("accept", "content-type", "origin", "sec-fetch-site", "sec-fetch-mode")


class FrontDoor:
    """Hands requests on to a service that starts after it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._behind: tuple[str, TestIssuer] | None = None

    def open_to(self, service_url: str, issuer: TestIssuer) -> None:
        """Say where the service is, and whose word it takes."""
        self._behind = (service_url, issuer)

    def browser(self, person: str) -> httpx.AsyncClient:
        """A browser in which somebody is signed in. The caller closes it."""
        return httpx.AsyncClient(
            base_url=self.url, cookies={"person": person}, trust_env=False, timeout=PATIENCE
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        answer = await self._hand_on(request)
        await answer(scope, receive, send)

    async def _hand_on(self, request: Request) -> Response:
        assert self._behind is not None
        url, issuer = self._behind
        person = request.cookies.get("person")
        if person is None and request.url.path != _PUBLIC:
            return Response("Sign in first.", 401)
        headers = {name: request.headers[name] for name in _HANDED_ON if name in request.headers}
        if person is not None:
            headers |= issuer.headers(person)
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as http:
            target = request.url.replace(scheme="http", netloc=url.removeprefix("http://"))
            answer = await http.request(
                request.method, str(target), content=await request.body(), headers=headers
            )
        return Response(answer.content, answer.status_code, dict(answer.headers))


@asynccontextmanager
async def front_door() -> AsyncIterator[FrontDoor]:
    """Run one."""
    listening, url = loopback_socket()
    door = FrontDoor(url)
    async with served(door, listening):
        yield door
