"""What the service says about itself, and about who is asking."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import PrincipalDep, ReaderDep, ServicesDep
from app.api.openapi import problems, public_problems
from app.api.own_runtime import own_runtime
from tenancy.identity.standing import is_suspended
from tenancy.principal import ADMIN

router = APIRouter(tags=["service"])

VERSION = "0.1.0"


class Ok(BaseModel):
    """This process answers."""

    ok: Literal[True]


class Info(BaseModel):
    """What LangGraph's clients ask before they use a feature."""

    version: str
    flags: dict[str, bool]


class ModelServer(BaseModel):
    """What a look at the model server found."""

    reachable: bool
    model_present: bool


class Ready(BaseModel):
    """This process can do its work. The model server is reported, not required."""

    ready: Literal[True]
    model_server: ModelServer


class RuntimeComponent(BaseModel):
    """How a part of the service stands."""

    component: str = Field(
        description="`database`; `workers`; `model:POOL`; `connection:SERVER`, of one's own."
    )
    status: Literal["available", "degraded", "unavailable"]
    reason: str | None = Field(
        None,
        description="A stable code: `database_unreachable`, `no_workers`, `worker_lost`,"
        " `ollama_unreachable`, `model_missing`, `model_failing`, `mcp_exited`, or another that"
        " begins with `mcp_`.",
    )
    occurred_at: datetime | None = Field(None, description="Since when it has not been available.")
    version: int = Field(description="Grows with each change: what has a lower one is older.")


class Runtime(BaseModel):
    """What parts of the service are able to do. One that nothing is known of is not in it."""

    components: list[RuntimeComponent]


class Me(BaseModel):
    """Who is signed in."""

    user_id: str
    name: str | None
    email: str | None
    roles: list[str]
    sign_out_url: str
    own_servers: bool = Field(description="Whether one may add tool servers of one's own.")
    state: Literal["active", "suspended"] = Field(
        description="`suspended`: an operator has put the account on hold. It can be read, exported"
        " and left, and nothing is done for it."
    )
    can_restart: bool = Field(
        description="Whether one is an operator, and the deployment offers them a restart."
    )
    runtime: Runtime


@router.get("/ok", operation_id="ok", response_model=Ok, responses=public_problems())
async def ok() -> Response:
    """Say that this process answers."""
    return json_answer({"ok": True})


@router.get("/info", operation_id="info", response_model=Info, responses=public_problems())
async def info() -> Response:
    """Say which version this is, and which of LangGraph's features it has."""
    flags = {"assistants": False, "crons": False, "langsmith": False, "strict_resume": False}
    return json_answer({"version": VERSION, "flags": flags})


@router.get("/ready", operation_id="ready", response_model=Ready, responses=public_problems(503))
async def ready(services: ServicesDep) -> Response:
    """Say whether this process can do its work: database, roles and schema are checked."""
    model = await services.readiness.check()
    found = {"reachable": model.reachable, "model_present": model.model_present}
    return json_answer({"ready": True, "model_server": found})


@router.get("/me", operation_id="me", response_model=Me, responses=problems())
async def me(principal: PrincipalDep, services: ServicesDep) -> Response:
    """Say who is signed in."""
    identity = principal.identity
    suspended = await is_suspended(services.database, principal)
    return json_answer(
        {
            "user_id": str(principal.user_id),
            "name": identity.name,
            "email": identity.email,
            "roles": sorted(identity.roles),
            "sign_out_url": services.settings.sign_out_url,
            "own_servers": services.settings.mcp_own_servers,
            "state": "suspended" if suspended else "active",
            "can_restart": ADMIN in identity.roles and services.settings.restart_url is not None,
            "runtime": await own_runtime(services, principal),
        }
    )


@router.get("/runtime", operation_id="runtime", response_model=Runtime, responses=problems())
async def runtime(reader: ReaderDep, services: ServicesDep) -> Response:
    """Say which parts of the service can do their work, one's own connections among them.

    While the database is away, of which that is said too, nothing is known of connections.
    """
    return json_answer(await own_runtime(services, reader))
