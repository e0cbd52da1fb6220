"""An MCP server that wants a token of the authorization server's, and notes what it is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server import MCPServer
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.support.oauth_server.authorization import TestAuthorizationServer
from tests.support.oauth_server.serving import loopback_socket, served

_WELL_KNOWN = "/.well-known/oauth-protected-resource"


class ProtectedMcpServer:
    """A streamable HTTP server with one tool, ``whoami``."""

    def __init__(self, origin: str, authorization: TestAuthorizationServer) -> None:
        self.url = f"{origin}/mcp"
        self.authorization = authorization
        self._origin = origin
        self.forget()

    def forget(self) -> None:
        """Be as at first."""
        self.origin = self._origin
        self.requests: list[dict[str, str]] = []
        """The headers of each request that came to the server's own address."""
        self.challenges = True
        """Whether it says, when it refuses, where it is described."""
        self.challenged_scope: str | None = "tools:call"
        self.description_path = f"{_WELL_KNOWN}/mcp"
        self.description: dict[str, Any] = {}
        """Replaces fields of its description."""

    @property
    def tokens(self) -> list[str]:
        """The tokens it was sent, in order."""
        sent = (request.get("authorization", "") for request in self.requests)
        return [each.removeprefix("Bearer ") for each in sent if each]

    def app(self) -> ASGIApp:
        """What answers: the tool server behind its guard."""
        tools = MCPServer("protected")

        @tools.tool()
        async def whoami() -> str:
            """Say that somebody is known."""
            return "somebody who was let in"

        inner = tools.streamable_http_app(stateless_http=True, json_response=True)

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await inner(scope, receive, send)
            elif scope["path"] == self.description_path:
                await JSONResponse(self._described())(scope, receive, send)
            elif scope["path"] == "/mcp":
                await self._guard(inner, scope, receive, send)
            else:
                await JSONResponse({}, 404)(scope, receive, send)

        return guarded

    def _described(self) -> dict[str, Any]:
        return {
            "resource": self.url,
            "authorization_servers": [self.authorization.url],
            "scopes_supported": ["tools:list"],
            **self.description,
        }

    async def _guard(self, inner: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.requests.append(headers)
        token = self.authorization.records.by_access(
            headers.get("authorization", "").removeprefix("Bearer ")
        )
        if (
            token is not None
            and token.is_good()
            and token.resource == self._described()["resource"]
        ):
            await inner(scope, receive, send)
            return
        refusal = JSONResponse({"error": "invalid_token"}, 401)
        refusal.headers["WWW-Authenticate"] = self._challenge()
        await refusal(scope, receive, send)

    def _challenge(self) -> str:
        parts = ['Bearer error="invalid_token"']
        if self.challenges:
            parts.append(f'resource_metadata="{self.origin}{self.description_path}"')
        if self.challenged_scope:
            parts.append(f'scope="{self.challenged_scope}"')
        return ", ".join(parts)


@asynccontextmanager
async def protected_mcp_server(
    authorization: TestAuthorizationServer,
) -> AsyncIterator[ProtectedMcpServer]:
    """Run one."""
    listening, origin = loopback_socket()
    server = ProtectedMcpServer(origin, authorization)
    async with served(server.app(), listening):
        yield server
