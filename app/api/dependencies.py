"""What handlers are given: the services, and who is asking. Identity enters here and only here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import Annotated, cast
from uuid import UUID

from fastapi import Depends, Request

from app.api.context import context_of, route_template
from app.api.rate_headers import REQUESTS
from app.api.services import Services
from tenancy.acts import Act
from tenancy.database.engine import DatabaseUnavailable
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


async def _reader(request: Request, services: ServicesDep) -> Principal | None:
    """The principal; None while the database is away, which knows them: the assertion is good."""
    try:
        return await _principal(request, services)
    except DatabaseUnavailable:
        return None


ReaderDep = Annotated[Principal | None, Depends(_reader)]
"""For what may be told of the service while nothing can be told of anybody."""


async def _act(request: Request, principal: PrincipalDep) -> Act:
    """What the request would do, were it an operator's: the route, and who asks for it."""
    return Act(f"{request.method} {route_template(request.scope)}", principal.user_id)


async def _operator(
    request: Request,
    principal: PrincipalDep,
    services: ServicesDep,
    act: Annotated[Act, Depends(_act)],
) -> Principal:
    """The principal, who is an operator: the gateway says so in the assertion.

    That somebody else asked is on record, and so is a look, before anything is shown. A change is
    put on record by whatever changes it, together with the change.

    Raises:
        Forbidden: they are somebody else.
        UserUnavailable: they are suspended, or leave.
    """
    if ADMIN not in principal.identity.roles:
        await services.acts.refused(act)
        raise Forbidden
    if request.method == "GET":
        await services.acts.looked(act, _looked_at(request))
    return principal


def _looked_at(request: Request) -> UUID | None:
    """Whom a look is about, as the address has it; what is no id is refused later."""
    said = request.path_params.get("user_id") or request.query_params.get("user_id")
    try:
        return UUID(str(said))
    except ValueError:
        return None


AdminDep = Annotated[Principal, Depends(_operator)]
FOR_OPERATORS = Depends(_operator)
"""For a router: whoever is no operator is refused before anything of the request is looked at."""


async def _operators_act(_operator: AdminDep, act: Annotated[Act, Depends(_act)]) -> Act:
    """What an operator does, for the change that goes on record with it."""
    return act


ActDep = Annotated[Act, Depends(_operators_act)]


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


def open_stream(
    services: Services, principal: Principal, limits: Limits
) -> AbstractContextManager[None]:
    """Hold one of the user's streams."""
    return services.streams.held(principal.user_id, int(limits["streams"] or 0))


async def _open_stream(
    principal: PrincipalDep, services: ServicesDep, limits: LimitsDep
) -> AsyncIterator[None]:
    """One of the user's streams, held until the response has been sent."""
    with open_stream(services, principal, limits):
        yield


OpenStreamDep = Annotated[None, Depends(_open_stream, scope="request")]
