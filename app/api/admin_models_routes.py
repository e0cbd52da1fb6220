"""For operators: have the models looked at now."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import FOR_OPERATORS, IN_TURN, ActDep, ServicesDep
from app.api.model_schemas import OfferedModelView, model_json
from app.api.openapi import problems

router = APIRouter(prefix="/admin", tags=["operators"], dependencies=[FOR_OPERATORS, IN_TURN])


@router.post(
    "/models/refresh",
    operation_id="admin_refresh_models",
    response_model=list[OfferedModelView],
    responses=problems(502),
)
async def refresh_models(services: ServicesDep, act: ActDep) -> Response:
    """Look at the model servers, and at the catalogue of prices, now; answer what was found.

    Whoever asks while that is under way is answered with the same. Where the catalogue cannot be
    had, what was known of it stays.
    """
    await services.acts.did(act, "models_refreshed")
    await services.catalogue.refresh()
    return json_answer([model_json(each) for each in services.catalogue.models])
