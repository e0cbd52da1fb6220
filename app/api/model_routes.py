"""The models that people may choose: what each can do, and what it costs."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import IN_TURN, PrincipalDep, ServicesDep
from app.api.model_schemas import OfferedModelView, model_json
from app.api.openapi import problems

router = APIRouter(tags=["models"], dependencies=[IN_TURN])


@router.get(
    "/models",
    operation_id="list_models",
    response_model=list[OfferedModelView],
    responses=problems(),
)
async def list_models(_principal: PrincipalDep, services: ServicesDep) -> Response:
    """List the models that a run may choose, the default one first.

    What is known is answered at once, and what is old is looked up meanwhile; only the first look
    of a process is waited for.
    """
    await services.catalogue.first_look()
    return json_answer([model_json(each) for each in services.catalogue.models])
