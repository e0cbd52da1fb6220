"""Leaving: begun by oneself, and asked after until the receipt is there."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.context import context_of
from app.api.dependencies import ServicesDep
from app.api.leavers import IN_WITNESS_TURN, SAYS_NOTHING, NoFields, WitnessDep
from app.api.openapi import optional_body_of, problems
from app.api.services import Services
from app.erasure.errors import ErasureNotFound
from app.erasure.views import ErasureView
from tenancy.errors import UserNotFound
from tenancy.principal import Identity

router = APIRouter(tags=["leaving"])


@router.delete(
    "/me",
    operation_id="leave",
    status_code=202,
    response_model=ErasureView,
    responses=problems(404, 413, 415),
    openapi_extra=optional_body_of(NoFields),
    dependencies=[IN_WITNESS_TURN, SAYS_NOTHING],
)
async def leave(request: Request, witness: WitnessDep, services: ServicesDep) -> Response:
    """Erase oneself and everything that is one's own, now and for good.

    It cannot be taken back. `Location` is where to ask how far it is: everything else answers 403
    from now on. Asked again, the same erasure is answered, also once it is done. Whoever comes back
    later is somebody new; this makes nobody of anybody. A suspended person may leave, too.
    """
    erasure = await _left(request, witness, services)
    return accepted(erasure, f"/erasures/{erasure.erasure_id}")


async def _left(request: Request, witness: Identity, services: Services) -> ErasureView:
    """The erasure that has begun now, or had before.

    Raises:
        UserNotFound: there is nobody to be erased, and it is not known that there was.
    """
    found = await services.directory.find(witness)
    if (user_id := found.user_id) is not None:
        context_of(request.scope).user_id = user_id
        services.directory.forget(user_id)
        try:
            return await services.erasures.begin(user_id, "person")
        except UserNotFound:  # their last row has gone since
            found = await services.directory.find(witness)
    if found.erasure_id is None:
        raise UserNotFound
    try:
        return await services.erasures.find(found.erasure_id)
    except ErasureNotFound:
        raise UserNotFound from None


@router.get(
    "/erasures/{erasure_id}",
    operation_id="get_erasure",
    response_model=ErasureView,
    responses=problems(404),
    dependencies=[IN_WITNESS_TURN],
)
async def get_erasure(erasure_id: UUID, services: ServicesDep) -> Response:
    """Say how far an erasure is, to whoever knows its id and brings a valid assertion.

    Nobody is signed in by asking: it makes no new account of somebody who has left.
    """
    erasure = await services.erasures.find(erasure_id)
    return json_answer(erasure.model_dump(mode="json"))


def accepted(erasure: ErasureView, location: str) -> Response:
    """An erasure that was begun, and where to ask after it."""
    return json_answer(erasure.model_dump(mode="json"), status=202, headers={"Location": location})
