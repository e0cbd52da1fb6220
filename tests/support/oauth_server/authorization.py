"""The authorization server's HTTP: its description, the person's consent, tokens, revocation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
from authlib.common.urls import add_params_to_uri
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tests.support.oauth_server.behaviour import Behaviour
from tests.support.oauth_server.protocol import Incoming, Protocol
from tests.support.oauth_server.records import PERSON, Client, Records
from tests.support.oauth_server.serving import loopback_socket, served


class TestAuthorizationServer:
    """An authorization server; ``url`` is its issuer's name."""

    __test__ = False

    def __init__(self, url: str) -> None:
        self.url = url
        self.forget()

    def forget(self) -> None:
        """Be as at first: it knows nobody and behaves well."""
        self.behaviour = Behaviour()
        self.records = Records()
        self._protocol = Protocol(self.records, self.behaviour)
        self.released = asyncio.Event()
        """Set: the token endpoint answers. A test that clears it holds answers back."""
        self.released.set()
        self.reached = asyncio.Event()
        """Set when the token endpoint is asked."""

    @property
    def origin(self) -> str:
        """Where it answers, whatever its issuer's path."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def app(self) -> Starlette:
        """What answers."""
        return Starlette(
            routes=[
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/revoke", self._revoke, methods=["POST"]),
                Route("/{path:path}", self._describe),
            ]
        )

    def register(self, client_id: str, redirect_uri: str, secret: str, method: str) -> None:
        """Know a client beforehand."""
        self.records.clients[client_id] = Client(client_id, [redirect_uri], secret, method)

    def description(self) -> dict[str, Any]:
        """What it says of itself."""
        document = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "revocation_endpoint": f"{self.origin}/revoke",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "client_id_metadata_document_supported": self.behaviour.takes_documents,
            "authorization_response_iss_parameter_supported": self.behaviour.names_issuer,
            **self.behaviour.metadata,
        }
        return {name: value for name, value in document.items() if value is not None}

    def _place(self) -> str:
        path = urlsplit(self.url).path.rstrip("/")
        return {
            "oauth": f"/.well-known/oauth-authorization-server{path}",
            "openid": f"/.well-known/openid-configuration{path}",
            "openid appended": f"{path}/.well-known/openid-configuration",
        }[self.behaviour.document_place]

    async def _describe(self, request: Request) -> Response:
        if request.url.path != self._place():
            return JSONResponse({"error": "not_found"}, 404)
        truth = self.description()
        answers: dict[str, Response] = {
            "truly": JSONResponse(truth),
            "redirect": RedirectResponse(f"{self.origin}/elsewhere"),
            "page": HTMLResponse("<h1>Sign in</h1>"),
            "labelled a page": HTMLResponse(json.dumps(truth)),
            "list": JSONResponse([truth]),
            "depth": Response("[" * 100_000, media_type="application/json"),
            "flood": JSONResponse({**truth, "more": "x" * 1_000_000}),
            "failure": JSONResponse({"error": "the password is hunter2"}, 500),
            "break": CutOff(JSONResponse(truth)),
        }
        return answers[self.behaviour.describes]

    async def _authorize(self, request: Request) -> Response:
        incoming = await _read(request)
        self.records.authorized.append(incoming.query)
        await self._learn(incoming.query.get("client_id", ""))
        asked = self._protocol.create_oauth2_request(incoming)
        grant = self._protocol.get_consent_grant(asked, PERSON)
        person = PERSON if self.behaviour.consents else None
        answer: Response = self._protocol.create_authorization_response(asked, person, grant)
        named = self.behaviour.answers_as or self.url
        if self.behaviour.names_issuer and "location" in answer.headers:
            location = add_params_to_uri(answer.headers["location"], [("iss", named)])
            answer.headers["location"] = location
        return answer

    async def _token(self, request: Request) -> Response:
        incoming = await _read(request)
        self.records.asked.append(incoming.form)
        self.reached.set()
        await self.released.wait()
        if self.behaviour.refuses_with is not None:
            return JSONResponse({"error": self.behaviour.refuses_with}, 400)
        answer: Response = self._protocol.create_token_response(incoming)
        return CutOff(answer) if self.behaviour.loses_answers else answer

    async def _revoke(self, request: Request) -> Response:
        incoming = await _read(request)
        answer: Response = self._protocol.create_endpoint_response("revocation", incoming)
        return answer

    async def _learn(self, client_id: str) -> None:
        """Fetch the description of a client that is named by its address."""
        if client_id in self.records.clients or not client_id.startswith("http"):
            return
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            document = (await http.get(client_id)).raise_for_status().json()
        assert document["client_id"] == client_id
        self.records.clients[client_id] = Client(
            client_id,
            document["redirect_uris"],
            auth_method=document["token_endpoint_auth_method"],
        )


class CutOff(Response):
    """The beginning of an answer, and then no more."""

    def __init__(self, whole: Response) -> None:
        super().__init__(whole.body, whole.status_code)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)


async def _read(request: Request) -> Incoming:
    form = await request.form() if request.method == "POST" else {}
    return Incoming(
        method=request.method,
        url=str(request.url),
        headers={name.title(): value for name, value in request.headers.items()},
        query=dict(request.query_params),
        form={name: str(value) for name, value in form.items()},
    )


@asynccontextmanager
async def authorization_server(issuer_path: str = "") -> AsyncIterator[TestAuthorizationServer]:
    """Run one."""
    listening, url = loopback_socket()
    server = TestAuthorizationServer(f"{url}{issuer_path}")
    async with served(server.app(), listening):
        yield server
