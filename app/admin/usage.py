"""What everybody has used, as an operator sees it: numbers by time and by person."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.admin.moment import Moment
from app.databases import maintenance_settings
from tenancy.scheduler.oversight import UsageOversight
from tenancy.scheduler.usage import BucketSize

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from app.settings import Settings

_CONNECTIONS = 1
"""A look at everybody's usage may take its time; one after the other."""


class Usage(BaseModel):
    """What was used."""

    prompt_tokens: int
    output_tokens: int
    calls: int
    runs: int
    tool_calls: int
    seat_seconds: float
    wait_seconds: float
    longest_wait_seconds: float


class UsageBucket(Usage):
    """What was used in an hour, or a day."""

    start: Moment


class UsageOfUser(Usage):
    """What one person used."""

    user_id: UUID


class UsageOfAll(BaseModel):
    """Usage by time, in total, and by person."""

    model_config = ConfigDict(populate_by_name=True)

    begin: Moment = Field(alias="from")
    end: Moment = Field(alias="to")
    bucket: BucketSize
    buckets: list[UsageBucket]
    total: Usage
    users: list[UsageOfUser] = Field(description="Most tokens first.")


class UsageAdmin:
    """Usage of everybody's. Connects when it is first used."""

    def __init__(self, settings: Settings) -> None:
        self._database = UsageOversight(
            replace(maintenance_settings(settings), pool_size=_CONNECTIONS)
        )

    async def assert_role(self) -> None:
        """Make sure that the maintenance role is what it must be.

        Raises:
            WrongRole: it may do more or less.
            WrongRevision: the database is not migrated to this version.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        await self._database.assert_role()

    async def usage(
        self,
        begin: datetime | None,
        end: datetime | None,
        bucket: BucketSize,
        user_id: UUID | None,
        limit: int,
    ) -> UsageOfAll:
        """What was used, widened to whole buckets; by default the last 24 hours.

        Raises:
            InvalidInput: there is no such range, or it has too many buckets.
        """
        found = await self._database.overview(begin, end, bucket, user_id, limit)
        return UsageOfAll.model_validate(found)

    async def close(self) -> None:
        """Close every connection."""
        await self._database.close()


@asynccontextmanager
async def usage_admin(settings: Settings) -> AsyncIterator[UsageAdmin]:
    """The same for one command.

    Raises:
        WrongRole: the maintenance role may do more or less than it must.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    admin = UsageAdmin(settings)
    try:
        await admin.assert_role()
        yield admin
    finally:
        await admin.close()
