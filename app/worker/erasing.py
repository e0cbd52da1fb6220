"""Leads people's erasures to their end, one at a time, as many workers as there are.

An erasure is led under a lease of its own, which is renewed meanwhile: whoever dies is followed by
another, who takes the same step again.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from app.databases import dispatch_settings, maintenance_settings
from app.erasure.receipts import Receipts
from app.erasure.revoking import TokenRevocation
from app.erasure.steps import ErasureSteps
from app.erasure.tombstones import Tombstones
from app.logging import facts_of
from app.stopping import end_task
from tenancy.database.upkeep import UpkeepDatabase
from tenancy.erasure.own_rows import OwnRows
from tenancy.erasure.records import ErasureDatabase
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from app.settings import Settings
    from tenancy.database.signals import Announcer
    from tenancy.database.tenant import TenantDatabase
    from tenancy.erasure.records import ErasureJob

log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0
"""How often it is looked for erasures that were not heard of, or whose worker died; more often
where leases are shorter than this."""
AGAIN_SECONDS = 1.0
"""When an erasure is taken up again that waits for others to let go."""
AFTER_FAILURE_SECONDS = 5.0
_RENEWALS = 3
"""How often a lease is renewed within its time."""


class Erasing:
    """Leads erasures, if there are keys to sign receipts with and a role to count rows by."""

    def __init__(self, settings: Settings, database: TenantDatabase, announcer: Announcer) -> None:
        self._settings = settings
        self._database = database
        self._announcer = announcer
        self._lease_seconds = settings.lease_seconds
        self._wanted = asyncio.Event()
        self._stack = AsyncExitStack()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look for them.

        Raises:
            SettingsError: the catalogue of servers or a key cannot be used.
        """
        settings = self._settings
        if settings.signing_keys is None or settings.maintenance_database_url is None:
            wanted = ["STOA_SIGNING_KEYS", "STOA_MAINTENANCE_DATABASE_URL"]
            log.warning("nobody can be erased: settings are missing", wanted=wanted)
            return
        erasures = ErasureDatabase(dispatch_settings(settings))
        self._stack.push_async_callback(erasures.close)
        upkeep = UpkeepDatabase(maintenance_settings(settings))
        self._stack.push_async_callback(upkeep.close)
        steps = ErasureSteps(
            erasures,
            OwnRows(self._database),
            upkeep,
            Tombstones(settings, self._database, erasures),
            TokenRevocation.of(settings, self._database, self._announcer),
            Receipts.of(settings),
            self._announcer,
        )
        work = self._look_for_ever(erasures, steps)
        self._task = asyncio.create_task(work, name="erasing")

    async def stop(self) -> None:
        """Stop at once, and leave what is under way to others."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._stack.aclose()

    def hear(self, _payload: str | None) -> None:
        """Somebody's state was changed, or may have been: look."""
        self._wanted.set()

    async def _look_for_ever(self, erasures: ErasureDatabase, steps: ErasureSteps) -> None:
        usual = min(LOOK_SECONDS, self._lease_seconds)
        while True:
            pause = usual
            self._wanted.clear()
            try:
                while job := await erasures.claim(self._lease_seconds):
                    if not await self._lead(job, erasures, steps):
                        pause = AGAIN_SECONDS
            except StoaError as error:
                log.warning("looking for erasures failed", **facts_of(error))
            except Exception:
                log.exception("looking for erasures broke")
            try:
                async with asyncio.timeout(pause):
                    await self._wanted.wait()
            except TimeoutError:
                pass

    async def _lead(self, job: ErasureJob, erasures: ErasureDatabase, steps: ErasureSteps) -> bool:
        """Take one step after the other, as far as it goes now; False where there is more to do."""
        keeping = asyncio.create_task(self._keep(job, erasures), name="lease of an erasure")
        try:
            return await self._take_steps(job, erasures, steps)
        except asyncio.CancelledError:
            with suppress(StoaError):  # then another goes on once the lease is over
                await erasures.wait(job, 0)  # the worker ends: another may at once
            raise
        except StoaError as error:
            log.warning(
                "an erasure does not go on", erasure_id=str(job.erasure_id), **facts_of(error)
            )
            await erasures.fail(job, error.code, AFTER_FAILURE_SECONDS)
        except Exception:
            log.exception("an erasure broke", erasure_id=str(job.erasure_id))
            await erasures.fail(job, StoaError.code, AFTER_FAILURE_SECONDS)
        finally:
            await end_task(keeping)
        return False

    async def _take_steps(
        self, job: ErasureJob, erasures: ErasureDatabase, steps: ErasureSteps
    ) -> bool:
        while True:
            taken = await steps.take(job)
            if taken is None:
                await erasures.wait(job, AGAIN_SECONDS)
                return False
            if not await erasures.advance(job, taken.next_step, **taken.facts):
                return True  # it is led by another by now
            if taken.next_step == "done":
                log.info("erased", erasure_id=str(job.erasure_id))
                return True
            job = replace(job, step=taken.next_step)

    async def _keep(self, job: ErasureJob, erasures: ErasureDatabase) -> None:
        """Renew the lease; where that fails for long, another takes the same steps again."""
        while True:
            await asyncio.sleep(self._lease_seconds / _RENEWALS)
            try:
                await erasures.keep(job, self._lease_seconds)
            except StoaError as error:
                log.warning("the lease of an erasure was not renewed", **facts_of(error))
