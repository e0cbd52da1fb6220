"""Leaving: begun by oneself, and asked after until the receipt is there."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import ServicesDep
from app.api.leavers import IN_LEAVERS_TURN, IN_WITNESS_TURN, SAYS_NOTHING, LeaverDep, NoFields
from app.api.openapi import optional_body_of, problems
from app.erasure.views import ErasureView
from tenancy.errors import UserNotFound

router = APIRouter(tags=["leaving"])


@router.delete(
    "/me",
    operation_id="leave",
    status_code=202,
    response_model=ErasureView,
    responses=problems(413, 415),
    openapi_extra=optional_body_of(NoFields),
    dependencies=[IN_LEAVERS_TURN, SAYS_NOTHING],
)
async def leave(leaver: LeaverDep, services: ServicesDep) -> Response:
    """Erase oneself and everything that is one's own, now and for good.

    It cannot be taken back. `Location` is where to ask how far it is: everything else answers 403
    from now on. Asked again meanwhile, the same erasure is answered. Whoever comes back later is
    somebody new. A suspended person may leave, too.
    """
    try:
        erasure = await services.erasures.begin(leaver.user_id, "person")
    except UserNotFound:  # they had left already, which this process had not heard
        services.directory.forget(leaver.user_id)
        leaver = await services.directory.principal(leaver.identity)
        erasure = await services.erasures.begin(leaver.user_id, "person")
    services.directory.forget(leaver.user_id)
    return accepted(erasure, f"/erasures/{erasure.erasure_id}")


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
