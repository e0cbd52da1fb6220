"""One's connections to tool servers: which there are, how they stand, whether they may be used."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.connection_schemas import ApprovalPut, ConnectionCreate, ConnectionView, KeyPut
from app.api.connection_views import connection_json
from app.api.dependencies import IN_TURN, PrincipalDep, ServicesDep
from app.api.json_body import json_body
from app.api.openapi import body_of, problems
from app.connections.errors import UnacceptableServer
from app.connections.own import accepted_server
from app.tools.approval.ruling import Ask

router = APIRouter(tags=["connections"], dependencies=[IN_TURN])

_OWN_EXAMPLE = {
    "name": "notes",
    "url": "https://mcp.example.com/mcp",
    "credential": {"kind": "key", "header": "X-Api-Key", "key": "k-123"},
}


@router.get(
    "/connections",
    operation_id="list_connections",
    response_model=list[ConnectionView],
    responses=problems(),
)
async def list_connections(principal: PrincipalDep, services: ServicesDep) -> Response:
    """List every tool server that one may use, and how it stood when it was last looked at."""
    found = await services.connections.all(principal)
    return json_answer([connection_json(each) for each in found])


@router.post(
    "/connections",
    operation_id="add_connection",
    response_model=ConnectionView,
    status_code=201,
    responses=problems(409, 413, 415),
    openapi_extra=body_of(ConnectionCreate, _OWN_EXAMPLE),
)
async def add_connection(
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[ConnectionCreate, Depends(json_body(ConnectionCreate))],
) -> Response:
    """Add a tool server of one's own, where the operator lets people do so."""
    said = body.credential
    if said.key is not None and said.kind != "key":
        raise UnacceptableServer("A key is for a server that takes one: say `kind: key`.")
    server = accepted_server(body.name, body.url, said.kind, said.header)
    added = await services.connection_changes.add(principal, server, said.key)
    return json_answer(connection_json(added), status=201)


@router.get(
    "/connections/{server}",
    operation_id="get_connection",
    response_model=ConnectionView,
    responses=problems(404),
)
async def get_connection(server: str, principal: PrincipalDep, services: ServicesDep) -> Response:
    """Return one tool server, and how it stood when it was last looked at."""
    return json_answer(connection_json(await services.connections.find(principal, server)))


@router.delete(
    "/connections/{server}",
    operation_id="remove_connection",
    status_code=204,
    responses=problems(404, 409),
)
async def remove_connection(
    server: str, principal: PrincipalDep, services: ServicesDep
) -> Response:
    """Remove a tool server of one's own. Its credential is revoked where it came from."""
    await services.connection_changes.remove(principal, server)
    return Response(status_code=204)


@router.post(
    "/connections/{server}/connect",
    operation_id="connect",
    response_model=ConnectionView,
    status_code=202,
    responses=problems(404),
)
async def connect(server: str, principal: PrincipalDep, services: ServicesDep) -> Response:
    """Let one's runs use a tool server. A worker looks at it; `/events` tells what it found."""
    found = await services.connection_changes.connect(principal, server)
    return json_answer(connection_json(found), status=202)


@router.post(
    "/connections/{server}/reconnect",
    operation_id="reconnect",
    response_model=ConnectionView,
    status_code=202,
    responses=problems(404),
)
async def reconnect(server: str, principal: PrincipalDep, services: ServicesDep) -> Response:
    """Have a tool server looked at by a new connection; those that are open are closed."""
    found = await services.connection_changes.connect(principal, server, anew=True)
    return json_answer(connection_json(found), status=202)


@router.post(
    "/connections/{server}/disconnect",
    operation_id="disconnect",
    response_model=ConnectionView,
    responses=problems(404),
)
async def disconnect(server: str, principal: PrincipalDep, services: ServicesDep) -> Response:
    """Use a tool server no more. Its credential is forgotten, and revoked where it came from."""
    found = await services.connection_changes.disconnect(principal, server)
    return json_answer(connection_json(found))


@router.put(
    "/connections/{server}/approval",
    operation_id="say_connection_approval",
    response_model=ConnectionView,
    responses=problems(404, 413, 415),
    openapi_extra=body_of(ApprovalPut, {"rules": {"*": "first_use", "close": "always"}}),
)
async def say_connection_approval(
    server: str,
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[ApprovalPut, Depends(json_body(ApprovalPut))],
) -> Response:
    """Say when one wants to be asked before a tool server's tools are called.

    It can only make the operator's rules stricter, and holds at once, for runs under way too.
    """
    rules = {tool: Ask(word) for tool, word in body.rules.items()}
    found = await services.connection_changes.say_approval(principal, server, rules)
    return json_answer(connection_json(found))


@router.put(
    "/connections/{server}/key",
    operation_id="set_connection_key",
    status_code=204,
    responses=problems(404, 409, 413, 415),
    openapi_extra=body_of(KeyPut, {"key": "k-123"}),
)
async def set_connection_key(
    server: str,
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[KeyPut, Depends(json_body(KeyPut))],
) -> Response:
    """Set the key that a tool server knows one by, and let one's runs use it.

    Nobody can read it again, oneself included. What used an earlier one is closed.
    """
    await services.connection_changes.set_key(principal, server, body.key)
    return Response(status_code=204)


@router.delete(
    "/connections/{server}/key",
    operation_id="forget_connection_key",
    status_code=204,
    responses=problems(404, 409),
)
async def forget_connection_key(
    server: str, principal: PrincipalDep, services: ServicesDep
) -> Response:
    """Forget a tool server's key. What used it is closed."""
    await services.connection_changes.forget_key(principal, server)
    return Response(status_code=204)
