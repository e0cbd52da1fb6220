"""The public halves of the keys that receipts are signed with."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import ServicesDep
from app.api.openapi import public_problems
from app.erasure.signing import signing_keys

router = APIRouter(tags=["leaving"])

_SECONDS = 300
"""How long others may keep what they read: after so long they know a new key."""


class PublicKey(BaseModel):
    """An Ed25519 key (RFC 8037)."""

    kty: str
    crv: str
    x: str
    kid: str
    use: str
    alg: str


class PublishedKeys(BaseModel):
    """A set of keys (RFC 7517); empty where the operator has set none."""

    keys: list[PublicKey]


@router.get(
    "/.well-known/jwks.json",
    operation_id="published_keys",
    response_model=PublishedKeys,
    responses=public_problems(),
)
async def published_keys(services: ServicesDep) -> Response:
    """Publish the keys by which anybody can verify a receipt."""
    keys = signing_keys(services.settings)
    return json_answer(
        {"keys": []} if keys is None else keys.published(),
        headers={"Cache-Control": f"public, max-age={_SECONDS}"},
    )
