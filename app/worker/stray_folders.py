"""Deletes people's folders on this host that are nobody's any more.

Somebody was erased while no worker ran here, or the host was away; or a process of theirs outlived
its worker and wrote once more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from app.databases import maintenance_settings
from app.erasure.folders import FoldersOfAnother, delete_strangers
from app.logging import facts_of
from tenancy.database.upkeep import UpkeepDatabase
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from app.settings import Settings

log = structlog.get_logger(__name__)

EVERY_SECONDS = 3600.0


class StrayFolders:
    """Looks at once, and then at a steady pace, if there is a maintenance role to look with."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._upkeep: UpkeepDatabase | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look."""
        if self._settings.maintenance_database_url is not None:
            self._upkeep = UpkeepDatabase(maintenance_settings(self._settings))
            self._task = asyncio.create_task(self._look_for_ever(self._upkeep), name="folders")

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._upkeep is not None:
            await self._upkeep.close()

    async def _look_for_ever(self, upkeep: UpkeepDatabase) -> None:
        while True:
            try:
                root, database = self._settings.mcp_folder, await upkeep.database_id()
                deleted = await delete_strangers(root, database, upkeep.every_user())
                if deleted:
                    log.info("folders of people who have left deleted", folders=deleted)
            except FoldersOfAnother:
                log.warning("STOA_MCP_FOLDER is another database's: no folder is deleted there")
            except StoaError as error:
                log.warning("looking for folders of nobody failed", **facts_of(error))
            except OSError as error:
                log.warning("a folder of nobody cannot be deleted", errno=error.errno)
            except Exception:
                log.exception("looking for folders of nobody broke")
            await asyncio.sleep(EVERY_SECONDS)
