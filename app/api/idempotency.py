"""``Idempotency-Key``: two requests that are one (draft-ietf-httpapi-idempotency-key-header)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Header, Request

from app.api.context import route_template
from app.api.refusals import MalformedRequest
from app.runs.runs import IdempotencyKey

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_BODY = "stoa.body_digest"
HEADER = b"idempotency-key"


def note_body(scope: MutableMapping[str, Any], raw: bytes) -> None:
    """Keep the digest of a body that was read, if the request may be one that came before."""
    if any(name == HEADER for name, _ in scope["headers"]):
        scope[_BODY] = hashlib.sha256(raw).digest()


@dataclass(frozen=True, slots=True)
class IdempotencyHeader:
    """A request's key; what it stands for is known once the body was read."""

    scope: MutableMapping[str, Any]
    key: str | None

    def with_body(self) -> IdempotencyKey | None:
        """The key with the fingerprint of the whole request; None if there is no key."""
        if self.key is None:
            return None
        method, path = str(self.scope["method"]), str(self.scope["path"])
        parts = (method.encode(), path.encode(), self.scope["query_string"], self.scope[_BODY])
        fingerprint = hashlib.sha256(b"\0".join(parts)).digest()
        return IdempotencyKey(f"{method} {route_template(self.scope)}", self.key, fingerprint)


async def _header(
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=255,
            pattern=r"^[!-~]+$",
            description="The same key with the same body, within 24 hours, is the same request.",
        ),
    ] = None,
) -> IdempotencyHeader:
    if sum(name == HEADER for name, _ in request.scope["headers"]) > 1:
        raise MalformedRequest("The request carries more than one Idempotency-Key.")
    return IdempotencyHeader(request.scope, idempotency_key)


IdempotencyDep = Annotated[IdempotencyHeader, Depends(_header)]
