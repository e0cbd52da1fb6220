"""What a web process knows of the parts that everybody shares, looked at once a second.

It looks for workers itself, since none may be left to say that there is none. While it cannot ask
the database, that is what it says, beside what it knew last.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from app.databases import dispatch_settings
from app.logging import facts_of
from app.runtime.parts import database_part
from tenancy.errors import StoaError
from tenancy.scheduler.components import ComponentDatabase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from app.settings import Settings
    from tenancy.scheduler.components import Component

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
"""A lost worker is told of within its lease and this."""
ANSWER_SECONDS = 5.0
"""A database that takes longer is as good as away."""


class RuntimeWatch:
    """Looks until stopped, and tells whoever listens when a part stands otherwise."""

    def __init__(self, settings: Settings) -> None:
        self._database = ComponentDatabase(dispatch_settings(settings))
        self._parts: tuple[Component, ...] = ()
        self._away_since: datetime | None = None
        self._looked_at = 0
        self._listeners: set[Callable[[], None]] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def parts(self) -> tuple[Component, ...]:
        """The parts as they were found last."""
        return (database_part(self._looked_at, self._away_since), *self._parts)

    async def start(self) -> None:
        """Look once, then begin to look again and again."""
        await self._look()
        self._task = asyncio.create_task(self._look_for_ever(), name="runtime watch")

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._database.close()

    @contextmanager
    def listening(self, heard: Callable[[], None]) -> Iterator[None]:
        """Have something called whenever a part stands otherwise.

        Who reads ``parts`` after the beginning of the block, and whenever called, misses nothing.
        """
        self._listeners.add(heard)
        try:
            yield
        finally:
            self._listeners.discard(heard)

    async def _look_for_ever(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._look()

    async def _look(self) -> None:
        before = self._away_since, self._parts
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                self._parts = tuple(await self._database.look())
            self._away_since = None
        except (StoaError, TimeoutError) as error:
            self._note_absence(error)
        except Exception:
            log.exception("looking at the parts of the service broke")
        self._looked_at = time.time_ns() // 1000
        if (self._away_since, self._parts) != before:
            for heard in tuple(self._listeners):
                heard()

    def _note_absence(self, error: Exception) -> None:
        if self._away_since is not None:
            return
        # Nobody's clock but this process's is there to ask; it is shown, and decides nothing.
        self._away_since = datetime.now(UTC)
        facts = facts_of(error) if isinstance(error, StoaError) else {"code": "timeout"}
        log.warning("the database does not answer", **facts)
