"""Lets go of people for whom nothing may be done: those who leave, and those who are suspended.

Whatever this worker does for them ends at once, as with a lost lease: nothing more is written. Of
somebody who leaves, their folder on this host goes too, and the worker says so: an erasure deletes
nothing before every living worker has. A suspended person's runs go back to the queue, where nobody
claims them until they are back.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from app.erasure.folders import delete_folder
from app.logging import facts_of, tenant_reference
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path
    from uuid import UUID

    from app.worker.claim import Claimer
    from app.worker.tool_services import ToolServices
    from tenancy.database.crossing import DispatchDatabase
    from tenancy.erasure.records import ErasureDatabase
    from tenancy.principal import UserId

log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0
"""How often it is looked for people of whom nothing was heard."""


class LettingGo:
    """Hears of people whose state was changed, and looks now and then, until stopped."""

    def __init__(
        self,
        worker_id: UUID,
        erasures: ErasureDatabase,
        dispatch: DispatchDatabase,
        claimer: Claimer,
        tools: ToolServices,
        folders: Path,
    ) -> None:
        self._worker_id = worker_id
        self._erasures = erasures
        self._dispatch = dispatch
        self._claimer = claimer
        self._tools = tools
        self._folders = folders
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._under_way: dict[UserId, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._look_for_ever(), name="letting go")

    async def stop(self) -> None:
        """Stop looking; what is not let go of ends with the worker."""
        tasks = [*self._under_way.values(), *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def hear(self, _payload: str | None) -> None:
        """Somebody's state was changed, or may have been: look."""
        self._wanted.set()

    async def _look_for_ever(self) -> None:
        while True:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._wanted.wait()
            except TimeoutError:
                pass
            self._wanted.clear()
            try:
                await self._look()
            except StoaError as error:
                log.warning("looking for people who leave failed", **facts_of(error))
            except Exception:
                log.exception("looking for people who leave broke")

    async def _look(self) -> None:
        leaving = await self._erasures.to_stop(self._worker_id)
        for erasure_id, user_id in leaving:
            self._begin(user_id, self._let_go(erasure_id, user_id))
        here = {each.run.user_id for each in self._claimer.running.values()}
        here |= self._tools.pool.owners
        here -= {user_id for _, user_id in leaving}
        if here:
            for user_id in await self._dispatch.unavailable_of(here):
                self._begin(user_id, self._put_back(user_id))

    def _begin(self, user_id: UserId, work: Coroutine[None, None, None]) -> None:
        if user_id in self._under_way:
            work.close()
            return
        task = asyncio.create_task(self._in_peace(work, user_id), name="letting go of somebody")
        self._under_way[user_id] = task
        task.add_done_callback(lambda _: self._under_way.pop(user_id))

    async def _in_peace(self, work: Coroutine[None, None, None], user_id: UserId) -> None:
        """Do it; what fails is found again by the next look."""
        try:
            await work
        except (StoaError, OSError) as error:
            facts = facts_of(error) if isinstance(error, StoaError) else {"errno": error.errno}
            log.warning("somebody is not let go of yet", user=tenant_reference(user_id), **facts)
        except Exception:
            log.exception("letting go broke", user=tenant_reference(user_id))

    async def _let_go(self, erasure_id: UUID, user_id: UserId) -> None:
        """End all that is done here for somebody who leaves, delete their folder, and say so."""
        await self._claimer.let_go(user_id)
        await self._tools.pool.drop(user_id, for_good=True)
        self._tools.known.forget(user_id)
        deleted = await delete_folder(self._folders, user_id)
        await self._erasures.stopped(erasure_id, self._worker_id, int(deleted))
        log.info("let go", user=tenant_reference(user_id), folder=deleted)

    async def _put_back(self, user_id: UserId) -> None:
        """End all that is done here for somebody who is suspended; their folder stays."""
        await self._claimer.let_go(user_id)
        await self._tools.pool.drop(user_id, for_good=False)
