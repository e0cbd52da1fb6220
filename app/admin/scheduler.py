"""What operators do with queues, pools and limits: over HTTP and on the command line."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from app.admin.limits_views import (
    PLAN_NAME,
    PlansView,
    PlanView,
    UserLimits,
    plan_view,
    rule_views,
    user_limits,
)
from app.admin.queue_views import PoolView, QueueView
from app.admin.workers_views import WorkerView
from app.databases import dispatch_settings
from app.settings import POOL_NAME
from app.sharing import default_limits, full_name
from tenancy.errors import InvalidInput, PlanNotFound, PoolNotFound
from tenancy.scheduler.limits import check_limits
from tenancy.scheduler.oversight import OversightDatabase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from uuid import UUID

    from app.settings import Settings
    from tenancy.acts import Act

_CONNECTIONS = 2
"""Operators are few."""


class SchedulerAdmin:
    """The queues, pools, plans, limits and workers of a deployment. Connects when it is first used.

    Whatever is changed is on record with the act by which it was.
    """

    def __init__(self, settings: Settings) -> None:
        self._database = OversightDatabase(
            replace(dispatch_settings(settings), pool_size=_CONNECTIONS)
        )
        self._defaults = default_limits(settings)
        self._model = full_name(settings.model)

    async def assert_role(self) -> None:
        """Make sure that the dispatch role is what it must be.

        Raises:
            WrongRole: it may do more or less.
            WrongRevision: the database is not migrated to this version.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        await self._database.assert_role()

    async def queue(self, limit: int) -> QueueView:
        """The queues, with up to ``limit`` people and things that wait longest."""
        found = await self._database.queue(limit, self._model, self._defaults)
        return QueueView.model_validate(found)

    async def pools(self) -> list[PoolView]:
        """Every pool there is."""
        return [PoolView.model_validate(found) for found in await self._database.pools()]

    async def workers(self) -> list[WorkerView]:
        """Every worker that has not left in order, the eldest first."""
        return [WorkerView.model_validate(found) for found in await self._database.workers()]

    async def set_capacity(self, pool: str, capacity: int | None, act: Act) -> PoolView:
        """Say how many calls a pool takes at once; None: as the settings say. 0 suspends it.

        Raises:
            PoolNotFound: there is no such pool.
        """
        if not re.fullmatch(POOL_NAME, pool):
            raise PoolNotFound
        await self._database.set_capacity(pool, capacity, act)
        for found in await self.pools():
            if found.pool == pool:
                return found
        raise PoolNotFound  # removed at this very moment

    async def limits_of(self, user_id: UUID) -> UserLimits:
        """What a person may use.

        Raises:
            UserNotFound: nobody has this id.
        """
        return user_limits(await self._database.limits_of(user_id, self._defaults))

    async def set_limits(
        self, user_id: UUID, plan: str | None, limits: Mapping[str, object], act: Act
    ) -> UserLimits:
        """Set a person's plan and own limits, in place of what they had; in force at once.

        Raises:
            UserNotFound: nobody has this id.
            InvalidInput: there is no such plan or limit, or it cannot have that value.
        """
        await self._database.set_limits(user_id, plan, check_limits(limits), act)
        return await self.limits_of(user_id)

    async def clear_limits(self, user_id: UUID, act: Act) -> UserLimits:
        """Take a person's plan and own limits away; in force at once.

        Raises:
            UserNotFound: nobody has this id.
        """
        await self._database.clear_limits(user_id, act)
        return await self.limits_of(user_id)

    async def plans(self) -> PlansView:
        """Every plan, and what can be in one."""
        return PlansView(plans=await self._plans(), rules=rule_views(self._defaults))

    async def set_plan(self, plan: str, limits: Mapping[str, object], act: Act) -> PlanView:
        """Make a plan, or change it for everybody who has it; in force at once.

        Raises:
            InvalidInput: there can be no such plan or limit, or it cannot have that value.
            PlanNotFound: it was deleted at this very moment.
        """
        if not re.fullmatch(PLAN_NAME, plan):
            raise InvalidInput(f"The name of a plan is like {PLAN_NAME}.")
        await self._database.set_plan(plan, check_limits(limits), act)
        for found in await self._plans():
            if found.plan == plan:
                return found
        raise PlanNotFound

    async def delete_plan(self, plan: str, act: Act) -> None:
        """Delete a plan that nobody has.

        Raises:
            PlanNotFound: there is none of that name.
            PlanInUse: somebody has it.
        """
        await self._database.delete_plan(plan, act)

    async def close(self) -> None:
        """Close every connection."""
        await self._database.close()

    async def _plans(self) -> list[PlanView]:
        return [plan_view(found) for found in await self._database.plans()]


@asynccontextmanager
async def scheduler_admin(settings: Settings) -> AsyncIterator[SchedulerAdmin]:
    """The same for one command.

    Raises:
        WrongRole: the dispatch role may do more or less than it must.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    admin = SchedulerAdmin(settings)
    try:
        await admin.assert_role()
        yield admin
    finally:
        await admin.close()
