"""Authorizing the service at a tool server: begun here, asked elsewhere, finished back here."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import IN_TURN, PrincipalDep, ServicesDep
from app.api.openapi import problems, public_problems
from app.connections.errors import ConnectionNotFound
from app.connections.oauth.authorizations import Answer
from app.connections.oauth.client import CALLBACK_PATH, DOCUMENT_PATH
from app.connections.oauth.errors import AuthorizationNotFound
from tenancy.errors import NotFound

router = APIRouter(tags=["connections"])

PAGE = "/tools"
"""Where the client shows connections; which one became of it, it sees by the address."""
_DOCUMENT_SECONDS = 300


class AuthorizationView(BaseModel):
    """An authorization that waits for the person's consent."""

    authorization_url: str = Field(
        description="Where their browser goes, as a page of its own. Good for ten minutes."
    )


class ClientDocument(BaseModel):
    """The service, as authorization servers that do not know it may read about it."""

    client_id: str
    client_name: str
    client_uri: str
    redirect_uris: list[str]
    grant_types: list[str]
    response_types: list[str]
    token_endpoint_auth_method: str
    application_type: str


class CallbackQuery(BaseModel):
    """What an authorization server sends the browser back with; it may add what it likes."""

    state: str = Field("", max_length=1024)
    code: str | None = Field(None, max_length=8192)
    error: str | None = Field(None, max_length=1024)
    iss: str | None = Field(None, max_length=2048)

    def answer(self) -> Answer:
        """The same, as the protocol's words."""
        return Answer(self.state, self.code, self.error, self.iss)


@router.post(
    "/connections/{server}/authorize",
    operation_id="authorize_connection",
    response_model=AuthorizationView,
    responses=problems(404, 409),
    dependencies=[IN_TURN],
)
async def authorize_connection(
    server: str, principal: PrincipalDep, services: ServicesDep
) -> Response:
    """Begin to let the service act for one at a tool server.

    What comes of it is for this person only, whoever's browser comes back.
    """
    found = await services.connection_changes.find_server(principal, server)
    if found is None:
        raise ConnectionNotFound
    url = await services.authorizations.begin(principal, found)
    return json_answer({"authorization_url": url})


@router.get(
    CALLBACK_PATH,
    operation_id="finish_authorization",
    status_code=303,
    response_class=Response,
    responses={303: {"description": "To the client's page of connections."}, **problems()},
    dependencies=[IN_TURN],
)
async def finish_authorization(
    principal: PrincipalDep, services: ServicesDep, query: Annotated[CallbackQuery, Query()]
) -> Response:
    """Take what a tool server's authorization said; where browsers come back to.

    Only who began an authorization can finish it, once, and within ten minutes.
    """
    try:
        finished = await services.authorizations.finish(principal, query.answer())
    except AuthorizationNotFound as unknown:
        return _to_page(failed="", code=unknown.code)
    if finished.failure is not None:
        return _to_page(failed=finished.server, code=finished.failure.code)
    return _to_page(connected=finished.server)


@router.get(
    DOCUMENT_PATH,
    operation_id="get_oauth_client",
    response_model=ClientDocument,
    responses=public_problems(404),
)
async def get_oauth_client(services: ServicesDep) -> Response:
    """Describe the service to authorization servers, for whom this address is its client id."""
    document = services.authorizations.client_document()
    if document is None:
        raise NotFound
    cached = {"Cache-Control": f"public, max-age={_DOCUMENT_SECONDS}"}
    return json_answer(document, headers=cached)


def _to_page(**said: str) -> Response:
    return Response(status_code=303, headers={"Location": f"{PAGE}?{urlencode(said)}"})
