"""What a web process knows of the parts that everybody shares, looked at once a second.

It looks for workers itself, since none may be left to say that there is none. While the database
does not answer, that is what it says, beside what it knew last.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from app.databases import dispatch_settings
from app.logging import facts_of
from app.runtime.parts import DATABASE, database_away, standing_of
from tenancy.errors import StoaError
from tenancy.scheduler.components import ComponentDatabase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Protocol

    from app.runtime.parts import PartStanding
    from app.settings import Settings
    from tenancy.scheduler.components import Component

    class Components(Protocol):
        """What is needed of ``ComponentDatabase``."""

        async def look(self) -> list[Component]:
            """All parts, the database among them."""
            ...

        async def close(self) -> None:
            """Close every connection."""
            ...


log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
"""A lost worker is told of within its lease and this."""
ANSWER_SECONDS = 5.0
"""A database that takes longer is as good as away."""


class RuntimeWatch:
    """Looks until stopped, and tells whoever listens when a part stands otherwise."""

    def __init__(self, settings: Settings, components: Components | None = None) -> None:
        self._components = components or ComponentDatabase(dispatch_settings(settings))
        self._parts: tuple[Component, ...] = ()
        self._answered_at = 0
        self._away_since: datetime | None = None
        self._listeners: set[Callable[[], None]] = set()
        self._looked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def parts(self) -> tuple[Component, ...]:
        """The parts as they were found last."""
        if self._away_since is None:
            return self._parts
        return (database_away(self._answered_at, self._away_since), *self._others())

    @property
    def has_database(self) -> bool:
        """Whether the database answered last."""
        return self._away_since is None

    async def start(self) -> None:
        """Look once, then begin to look again and again."""
        await self._look()
        self._task = asyncio.create_task(self._look_for_ever(), name="runtime watch")

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._components.close()

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

    async def next_look(self) -> None:
        """Return once the parts were looked at again, all of it from now on."""
        for _ in range(2):  # the first may have been under way
            await self._looked.wait()

    async def _look_for_ever(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._look()

    async def _look(self) -> None:
        before = self._standing()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                self._take_note(await self._components.look())
        except (StoaError, TimeoutError) as error:
            self._note_absence(error)
        except Exception:
            log.exception("looking at the parts of the service broke")
        if self._standing() != before:
            for heard in tuple(self._listeners):
                heard()
        self._looked.set()
        self._looked = asyncio.Event()

    def _standing(self) -> tuple[PartStanding, ...]:
        return tuple(standing_of(part) for part in self.parts)

    def _take_note(self, found: Sequence[Component]) -> None:
        # Beyond what was said while it was away, even where its clock was set back meanwhile.
        beyond = self._answered_at + 2
        self._parts = tuple(
            replace(part, version=max(part.version, beyond)) if part.component == DATABASE else part
            for part in found
        )
        self._answered_at = max(part.version for part in self._parts if part.component == DATABASE)
        self._away_since = None

    def _others(self) -> tuple[Component, ...]:
        return tuple(part for part in self._parts if part.component != DATABASE)

    def _note_absence(self, error: Exception) -> None:
        if self._away_since is not None:
            return
        # Nobody's clock but this process's is there to ask; it is shown, and decides nothing.
        self._away_since = datetime.now(UTC)
        facts = facts_of(error) if isinstance(error, StoaError) else {"code": "timeout"}
        log.warning("the database does not answer", **facts)
