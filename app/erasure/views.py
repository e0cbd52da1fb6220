"""How far an erasure is, as it is told: counts and times, and nothing of whose it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal, get_args
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field

if TYPE_CHECKING:
    from tenancy.erasure.records import Erasure

State = Literal["begun", "stopping", "deleting", "verifying", "done"]
Step = Literal["record", "revoke", "destroy_keys", "stop", "delete", "verify", "sign", "done"]
Moment = Annotated[datetime, AfterValidator(lambda at: at.astimezone(UTC))]

STATES: dict[Step, State] = {
    "record": "begun",
    "revoke": "begun",
    "destroy_keys": "begun",
    "stop": "stopping",
    "delete": "deleting",
    "verify": "verifying",
    "sign": "verifying",
    "done": "done",
}


class ErasureView(BaseModel):
    """An erasure, and how far it is."""

    erasure_id: UUID
    state: State
    step: Step = Field(description="What is done next.")
    requested_at: Moment
    requested_by: Literal["person", "operator", "restore"] = Field(
        description="`restore`: it was done before, and is done again after a backup was restored."
    )
    ended_at: Moment | None
    keys_destroyed: int = Field(description="Of the vault, before anything else was deleted.")
    tokens_revoked: int = Field(description="Authorizations given back to their issuers.")
    tokens_not_revoked: int = Field(description="Those whose issuer could not be asked in time.")
    folders_deleted: int = Field(description="Of tool servers.")
    deleted: dict[str, int] = Field(description="Rows by table.")
    remaining: dict[str, int] | None = Field(
        description="Rows that were left by table when everything was counted again: zeros."
    )
    verified_at: Moment | None
    failure: str | None = Field(description="What went wrong last; it is tried again.")
    receipt: str | None = Field(
        description="A compact JWS, which the keys at `/.well-known/jwks.json` verify."
    )


def steps_of(state: State) -> tuple[Step, ...]:
    """The steps that make up a state."""
    return tuple(step for step in get_args(Step) if STATES[step] == state)


def erasure_view(erasure: Erasure) -> ErasureView:
    """The same as it is told."""
    return ErasureView(
        erasure_id=erasure.erasure_id,
        state=STATES[erasure.step],
        step=erasure.step,
        requested_at=erasure.requested_at,
        requested_by=erasure.requested_by,
        ended_at=erasure.ended_at,
        keys_destroyed=erasure.keys_destroyed,
        tokens_revoked=erasure.tokens_revoked,
        tokens_not_revoked=erasure.tokens_not_revoked,
        folders_deleted=erasure.folders_deleted,
        deleted=dict(erasure.deleted),
        remaining=None if erasure.remaining is None else dict(erasure.remaining),
        verified_at=erasure.verified_at,
        failure=erasure.failure,
        receipt=erasure.receipt,
    )
