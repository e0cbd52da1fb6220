"""The HTTP application: routes, layers, error handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response

from app.api import (
    admin_audit_routes,
    admin_erasures_routes,
    admin_limits_routes,
    admin_models_routes,
    admin_routes,
    admin_users_routes,
    approval_routes,
    cancel_routes,
    connection_routes,
    erasure_routes,
    event_routes,
    export_routes,
    jwks_routes,
    limit_routes,
    memory_routes,
    mention_routes,
    model_routes,
    oauth_routes,
    own_audit_routes,
    run_routes,
    state_routes,
    store_routes,
    system_routes,
    thread_routes,
    thread_stream,
)
from app.api.answers import json_answer
from app.api.boundary import RequestBoundary
from app.api.errors import install_error_handlers
from app.api.openapi import describe
from app.api.origin import OriginGuard
from app.api.system_routes import VERSION
from app.api.upgrade import UpgradeGuard
from app.api.web_client import add_web_client

if TYPE_CHECKING:
    from app.api.boundary import Answers
    from app.api.services import Services

_ROUTES = (
    system_routes,
    thread_routes,
    thread_stream,
    state_routes,
    run_routes,
    cancel_routes,
    approval_routes,
    limit_routes,
    memory_routes,
    mention_routes,
    model_routes,
    store_routes,
    oauth_routes,  # before the next: `callback` is no server's name
    connection_routes,
    event_routes,
    export_routes,
    own_audit_routes,
    erasure_routes,
    jwks_routes,
    admin_routes,
    admin_limits_routes,
    admin_models_routes,
    admin_users_routes,
    admin_erasures_routes,
    admin_audit_routes,
)
_READABLE_HEADERS = (
    "Content-Disposition",
    "Content-Location",
    "Location",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
    "X-Pagination-Total",
    "X-Pagination-Next",
    "X-Request-Id",
)


def create_app(services: Services, answers: Answers | None = None) -> FastAPI:
    """Make the application around started services; ``answers`` counts what it answers."""
    app = FastAPI(
        title="Stoa",
        summary="A hosted, multi-tenant agent service. Speaks LangGraph Platform's API.",
        version=VERSION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=_layers(services.settings.cors_origins, answers),
    )
    app.state.services = services
    install_error_handlers(app)
    for module in _ROUTES:
        app.include_router(module.router)
    app.add_api_route("/openapi.json", _document, include_in_schema=False)
    add_web_client(app)
    return app


async def _document(request: Request) -> Response:
    return json_answer(describe(request.app))


def _layers(cors_origins: tuple[str, ...], answers: Answers | None) -> list[Middleware]:
    layers = [Middleware(RequestBoundary, answers=answers), Middleware(UpgradeGuard)]
    if cors_origins:
        layers.append(
            Middleware(
                CORSMiddleware,
                allow_origins=cors_origins,
                allow_credentials=True,
                allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
                allow_headers=["*"],
                expose_headers=_READABLE_HEADERS,
            )
        )
    layers.append(Middleware(OriginGuard, allowed=cors_origins))
    return layers
