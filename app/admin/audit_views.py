"""The record as an operator sees it: facts, under references."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from app.admin.moment import Moment


class RecordEntry(BaseModel):
    """One thing that was done, asked, decided or refused."""

    audit_id: int
    at: Moment
    actor: Literal["person", "service", "operator"]
    action: str
    reference: UUID | None = Field(description="Of whom it was done to; null: of nobody's account.")
    user_id: UUID | None = Field(description="Who that is, until they are erased.")
    by_reference: UUID | None = Field(description="Of the operator, or of who wanted to be one.")
    by_user_id: UUID | None = Field(description="Who that is, until they are erased.")
    account: str | None = Field(description="The operating system's, on the command line.")
    route: str | None = Field(description="What an operator called.")
    object: str | None = Field(description="The pool, plan or run that it was about.")
    thread_id: UUID | None
    run_id: UUID | None
    approval_id: UUID | None
    decision: str | None
    why: str | None = Field(description="A code.")
    expires_at: Moment | None
