"""Whether this process can do its work now."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from app.models.health import PoolHealth, probe
from app.sharing import declared_pools, full_name
from tenancy.database.roles import assert_role
from tenancy.errors import ServiceUnavailable, StoaError

if TYPE_CHECKING:
    from app.settings import Settings
    from tenancy.database.engine import DatabaseSettings

log = structlog.get_logger(__name__)

FRESH_SECONDS = 2.0
"""Anybody may ask, so asking often must cost nothing."""


class NotReady(ServiceUnavailable):
    """The database, its roles or its schema are not what this process needs."""

    code = "not_ready"
    message = "The service is not ready."


@dataclass(frozen=True, slots=True)
class ReadinessReport:
    """What was found. The model server is reported, not required."""

    database_problem: str | None
    model: PoolHealth


class Readiness:
    """Checks the database's role and revision, and looks for the model server."""

    def __init__(self, settings: Settings, database: DatabaseSettings) -> None:
        self._settings = settings
        self._database = database
        self._lock = asyncio.Lock()
        self._checked_at = 0.0
        self._report: ReadinessReport | None = None

    async def check(self) -> PoolHealth:
        """Return how the model server is doing.

        Raises:
            NotReady: the database, its roles or its schema are not right.
        """
        async with self._lock:
            if self._report is None or time.monotonic() - self._checked_at > FRESH_SECONDS:
                self._report = await self._look()
                self._checked_at = time.monotonic()
            report = self._report
        if report.database_problem is not None:
            raise NotReady
        return report.model

    async def _look(self) -> ReadinessReport:
        default = full_name(self._settings.model)
        pools = [pool for pool in declared_pools(self._settings) if pool.model == default]
        problem, found = await asyncio.gather(
            self._database_problem(),
            asyncio.gather(*(probe(pool.url, pool.model) for pool in pools)),
        )
        model = max(found, key=lambda health: (health.ready, health.reachable))
        if problem is not None:
            log.warning("not ready", reason=problem)
        return ReadinessReport(problem, model)

    async def _database_problem(self) -> str | None:
        try:
            await assert_role(self._database, reads_content=True)
        except StoaError as error:
            return error.code
        return None
