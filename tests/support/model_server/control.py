"""Routes that steer a scripted model server in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.model_server.script import Script

if TYPE_CHECKING:
    from tests.support.model_server.application import ModelApplication

MOMENTS = ("received_at", "stalled_at", "finished_at", "disconnected_at")


def routes(application: ModelApplication) -> list[Route]:
    """Return the control routes.

    - ``POST /control/scripts``: a list of scripts for the next requests.
    - ``PUT /control/default``: the script of all other requests.
    - ``GET /control/requests``: everything seen. With ``?wait=stalled_at&n=2``, answers when that
      has happened to two requests, with the second.
    - ``POST /control/release/{number}``: lets a stalled request go on.
    """

    async def scripts(request: Request) -> Response:
        added = [Script.model_validate(each) for each in await request.json()]
        application.plan.queue.extend(added)
        return JSONResponse({"queued": len(application.plan.queue)})

    async def default(request: Request) -> Response:
        application.plan.default = Script.model_validate(await request.json())
        return JSONResponse({})

    async def requests(request: Request) -> Response:
        moment = request.query_params.get("wait")
        if moment is None:
            return JSONResponse([each.summary() for each in application.journal.requests])
        if moment not in MOMENTS:
            return JSONResponse({"error": f"wait: one of {MOMENTS}"}, 422)
        n = int(request.query_params.get("n", "1"))
        seen = await application.journal.wait_for(n, lambda each: getattr(each, moment))
        return JSONResponse(seen.summary())

    async def release(request: Request) -> Response:
        number = request.path_params["number"]
        application.journal.release(application.journal.requests[number - 1])
        return JSONResponse({})

    return [
        Route("/control/scripts", scripts, methods=["POST"]),
        Route("/control/default", default, methods=["PUT"]),
        Route("/control/requests", requests, methods=["GET"]),
        Route("/control/release/{number:int}", release, methods=["POST"]),
    ]
