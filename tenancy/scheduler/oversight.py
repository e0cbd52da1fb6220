"""What operators see of the queues and of everybody's usage, and what they set; no content.

Two doors: the queues and limits under the dispatch role, usage under the maintenance role. The
grants of both leave out everything that a person said. Only ``app.admin`` uses them (a contract
in ``pyproject.toml`` says so).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenancy.database.calls import FunctionCalls
from tenancy.database.signals import MOST_KEYS, RUN_QUEUED, SEAT_GRANTED
from tenancy.errors import InvalidInput, PlanInUse, PlanNotFound, PoolNotFound, UserNotFound
from tenancy.oversight.roles import assert_dispatch, assert_maintenance
from tenancy.scheduler.usage import MOST_BUCKETS, check_times

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from tenancy.acts import Act
    from tenancy.database.engine import DatabaseSettings
    from tenancy.scheduler.limits import Limits
    from tenancy.scheduler.usage import BucketSize

_QUEUE = "SELECT dispatch.queue_overview($1, $2, $3)"
_POOLS = "SELECT * FROM dispatch.pool_facts()"
_SET_CAPACITY = "SELECT known, granted FROM dispatch.set_capacity($1, $2, $3, $4, $5)"
_LIMITS = "SELECT * FROM dispatch.limits_set($1, $2)"
_SET_LIMITS = "SELECT outcome, granted FROM dispatch.set_limits($1, $2, $3, $4, $5, $6)"
_CLEAR_LIMITS = "SELECT outcome, granted FROM dispatch.clear_limits($1, $2, $3, $4)"
_PLANS = "SELECT * FROM dispatch.plans_set()"
_SET_PLAN = "SELECT dispatch.set_plan($1, $2, $3, $4, $5)"
_DELETE_PLAN = "SELECT outcome, granted FROM dispatch.delete_plan($1, $2, $3, $4)"
_WORKERS = "SELECT * FROM dispatch.worker_facts()"
_NOTIFY = "SELECT pg_notify($1, $2)"
_USAGE = "SELECT tenant.usage_overview($1, $2, $3, $4, $5, $6)"


class OversightDatabase:
    """The queues, the pools, the limits and the workers. Each method is one function call.

    What changes is in force when a method returns, on record, and workers have been told. One that
    was not told looks by itself within a second. A change raises ``UserUnavailable`` where the
    operator may not use the service any more.
    """

    def __init__(self, settings: DatabaseSettings) -> None:
        self._settings = settings
        self._calls = FunctionCalls(settings)

    async def assert_role(self) -> None:
        """Make sure that the role may do all this, and cannot read what people say.

        Raises:
            WrongRole: it may do more or less.
            WrongRevision: the database is not migrated to this version.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        await assert_dispatch(self._settings, self._calls)

    async def queue(self, limit: int, model: str, defaults: Mapping[str, object]) -> dict[str, Any]:
        """Models, pools, runs, and up to ``limit`` people and things that wait longest.

        ``model`` is the default one, ``defaults`` are the service's own limits.
        """
        (row,) = await self._calls.fetch(_QUEUE, limit, model, dict(defaults))
        overview: dict[str, Any] = row[0]
        return overview

    async def pools(self) -> list[dict[str, Any]]:
        """Every pool, and those that were removed while calls are in flight there."""
        return [dict(row.items()) for row in await self._calls.fetch(_POOLS)]

    async def set_capacity(self, pool: str, capacity: int | None, act: Act) -> None:
        """Say how many calls a pool takes at once; None: as the settings say. 0 suspends it.

        Calls in flight end as they would.

        Raises:
            PoolNotFound: there is no such pool.
        """
        (row,) = await self._calls.fetch(_SET_CAPACITY, pool, capacity, *act.arguments)
        if not row["known"]:
            raise PoolNotFound
        await self._tell(row["granted"])

    async def limits_of(self, user_id: UUID, defaults: Mapping[str, object]) -> dict[str, Any]:
        """A person's plan, their own limits, and all that are in force.

        Raises:
            UserNotFound: nobody has this id.
        """
        rows = await self._calls.fetch(_LIMITS, user_id, dict(defaults))
        if not rows:
            raise UserNotFound
        return dict(rows[0].items())

    async def set_limits(self, user_id: UUID, plan: str | None, limits: Limits, act: Act) -> None:
        """Set a person's plan and own limits, in place of what they had.

        Raises:
            UserNotFound: nobody has this id.
            InvalidInput: there is no such plan.
        """
        (row,) = await self._calls.fetch(_SET_LIMITS, user_id, plan, limits, *act.arguments)
        if row["outcome"] == "no_user":
            raise UserNotFound
        if row["outcome"] == "no_plan":
            raise InvalidInput("There is no plan of that name. Make it first.")
        await self._tell(row["granted"])

    async def clear_limits(self, user_id: UUID, act: Act) -> None:
        """Take a person's plan and own limits away.

        Raises:
            UserNotFound: nobody has this id.
        """
        (row,) = await self._calls.fetch(_CLEAR_LIMITS, user_id, *act.arguments)
        if row["outcome"] == "no_user":
            raise UserNotFound
        await self._tell(row["granted"])

    async def plans(self) -> list[dict[str, Any]]:
        """Every plan, by name, with how many people have it."""
        return [dict(row.items()) for row in await self._calls.fetch(_PLANS)]

    async def set_plan(self, plan: str, limits: Limits, act: Act) -> None:
        """Make a plan, or change it for everybody who has it."""
        (row,) = await self._calls.fetch(_SET_PLAN, plan, limits, *act.arguments)
        await self._tell(row[0])

    async def delete_plan(self, plan: str, act: Act) -> None:
        """Delete a plan.

        Raises:
            PlanNotFound: there is none of that name.
            PlanInUse: somebody has it.
        """
        (row,) = await self._calls.fetch(_DELETE_PLAN, plan, *act.arguments)
        if row["outcome"] == "no_plan":
            raise PlanNotFound
        if row["outcome"] == "in_use":
            raise PlanInUse
        await self._tell(row["granted"])

    async def workers(self) -> list[dict[str, Any]]:
        """Every worker that has not left in order, and what it holds; the eldest first."""
        return [dict(row.items()) for row in await self._calls.fetch(_WORKERS)]

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()

    async def _tell(self, granted: Iterable[UUID]) -> None:
        """Wake the workers: runs may be claimable now, and these calls were given a seat."""
        await self._calls.fetch(_NOTIFY, RUN_QUEUED, "")
        keys = [str(call_id) for call_id in granted]
        for start in range(0, len(keys), MOST_KEYS):
            some = ",".join(keys[start : start + MOST_KEYS])
            await self._calls.fetch(_NOTIFY, SEAT_GRANTED, some)


class UsageOversight:
    """What everybody has used."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._settings = settings
        self._calls = FunctionCalls(settings)

    async def assert_role(self) -> None:
        """Make sure that the role may count, and cannot read what people say.

        Raises:
            WrongRole: it may do more or less.
            WrongRevision: the database is not migrated to this version.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        await assert_maintenance(self._settings, self._calls)

    async def overview(
        self,
        begin: datetime | None,
        end: datetime | None,
        bucket: BucketSize,
        user_id: UUID | None,
        limit: int,
    ) -> dict[str, Any]:
        """Usage by time and in total, and up to ``limit`` people, most tokens first.

        Of one person only, if one is named. Without an end until now, without a beginning of 24
        hours.

        Raises:
            InvalidInput: there is no such range, or it has too many buckets.
        """
        check_times(begin, end)
        (row,) = await self._calls.fetch(_USAGE, begin, end, bucket, user_id, limit, MOST_BUCKETS)
        overview: dict[str, Any] | None = row[0]
        if overview is None:
            raise InvalidInput(
                f"`from` is before `to`, and at most {MOST_BUCKETS} buckets lie between them."
            )
        return overview

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
