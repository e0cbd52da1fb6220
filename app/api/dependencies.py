"""What handlers are given: the services, and who is asking. Identity enters here and only here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, cast

from fastapi import Depends, Request

from app.api.context import context_of
from app.api.services import Services
from tenancy.principal import Principal


async def _services(request: Request) -> Services:
    """The process's services; a coroutine, since others are sent to a thread."""
    return cast("Services", request.app.state.services)


ServicesDep = Annotated[Services, Depends(_services)]


async def _principal(request: Request, services: ServicesDep) -> Principal:
    """The verified principal of a request, from its raw header lines."""
    identity = await services.verifier.verify(request.scope["headers"])
    principal = await services.directory.principal(identity)
    context_of(request.scope).user_id = principal.user_id
    return principal


PrincipalDep = Annotated[Principal, Depends(_principal)]


async def _turn(principal: PrincipalDep, services: ServicesDep) -> AsyncIterator[None]:
    """One of the user's turns, held while the handler works."""
    async with services.turns.turn(principal.user_id):
        yield


IN_TURN = Depends(_turn, scope="function")
"""For a router: the turn ends with the handler, so a stream that follows holds up nobody."""


async def _open_stream(principal: PrincipalDep, services: ServicesDep) -> AsyncIterator[None]:
    """One of the user's streams, held until the response has been sent."""
    with services.streams.held(principal.user_id):
        yield


OpenStreamDep = Annotated[None, Depends(_open_stream, scope="request")]
