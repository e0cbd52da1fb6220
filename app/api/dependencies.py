"""What handlers are given: the services, and who is asking. Identity enters here and only here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, cast

from fastapi import Depends, Request

from app.api.context import context_of
from app.api.rate_headers import REQUESTS
from app.api.services import Services
from tenancy.errors import Forbidden, RequestRateExceeded, UserUnavailable
from tenancy.principal import ADMIN, Identity, Principal
from tenancy.scheduler.limits import Limits
from tenancy.scheduler.requests import Admission, admit_request


async def _services(request: Request) -> Services:
    """The process's services; a coroutine, since others are sent to a thread."""
    return cast("Services", request.app.state.services)


ServicesDep = Annotated[Services, Depends(_services)]


async def _principal(request: Request, services: ServicesDep) -> Principal:
    """The verified principal of a request, from its raw header lines; the request is counted.

    Raises:
        UserUnavailable: they are being erased.
        RequestRateExceeded: there were too many in a short time.
    """
    identity = await services.verifier.verify(request.scope["headers"])
    principal, admission = await _admitted(services, identity)
    context = context_of(request.scope)
    context.user_id = principal.user_id
    context.admission = admission
    if not context.admission.admitted:
        raise RequestRateExceeded(REQUESTS, retry_seconds=context.admission.retry_seconds)
    return principal


async def _admitted(services: Services, identity: Identity) -> tuple[Principal, Admission]:
    """Who is asking, and whether the request is let in.

    Somebody who has left since they were last seen here is signed in anew, as somebody new.
    """
    principal = await services.directory.principal(identity)
    try:
        return principal, await admit_request(services.database, principal, services.limits)
    except UserUnavailable:
        services.directory.forget(principal.user_id)
        again = await services.directory.principal(identity)
        if again.user_id == principal.user_id:
            raise
        return again, await admit_request(services.database, again, services.limits)


PrincipalDep = Annotated[Principal, Depends(_principal)]


async def _operator(principal: PrincipalDep) -> Principal:
    """The principal, who is an operator: the gateway says so in the assertion.

    Raises:
        Forbidden: they are somebody else.
    """
    if ADMIN not in principal.identity.roles:
        raise Forbidden
    return principal


AdminDep = Annotated[Principal, Depends(_operator)]
FOR_OPERATORS = Depends(_operator)
"""For a router: whoever is no operator is refused before anything of the request is looked at."""


async def _limits(request: Request, _principal: PrincipalDep) -> Limits:
    """What the principal may use."""
    admission = context_of(request.scope).admission
    assert admission is not None  # noqa: S101 - the principal's is the one that was counted
    return admission.limits


LimitsDep = Annotated[Limits, Depends(_limits)]


async def _turn(principal: PrincipalDep, services: ServicesDep) -> AsyncIterator[None]:
    """One of the user's turns, held while the handler works."""
    async with services.turns.turn(principal.user_id):
        yield


IN_TURN = Depends(_turn, scope="function")
"""For a router: the turn ends with the handler, so a stream that follows holds up nobody."""


async def _open_stream(
    principal: PrincipalDep, services: ServicesDep, limits: LimitsDep
) -> AsyncIterator[None]:
    """One of the user's streams, held until the response has been sent."""
    with services.streams.held(principal.user_id, int(limits["streams"] or 0)):
        yield


OpenStreamDep = Annotated[None, Depends(_open_stream, scope="request")]
