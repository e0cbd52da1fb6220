"""Workers as an operator sees them."""

from __future__ import annotations

from uuid import UUID

from pydantic import BaseModel, Field

from app.admin.moment import Moment


class WorkerView(BaseModel):
    """One worker process that has not left in order."""

    worker_id: UUID
    host: str
    pid: int
    started_at: Moment
    age_seconds: float
    lease_until: Moment
    lease_seconds: float = Field(description="What is left of its lease; below 0 it is dead.")
    draining: bool = Field(description="It claims nothing more, and ends when it has nothing.")
    runs: int = Field(description="Runs that it executes.")
    seats: int = Field(description="Calls of a model that have a seat.")
