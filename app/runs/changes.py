"""What changed among one person's runs: heard of by their keys, then looked up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import sqlalchemy as sa

from tenancy.run_states import OPEN, RunState
from tenancy.tables import runs

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from tenancy.database.tenant import TenantRead

MOST_KEPT = 1000
"""Ids that are kept of what was heard, and runs that are looked up at once: the rest of somebody
who has more is heard of when it changes again."""


class HeardChanges:
    """Which of one person's runs and threads were heard of since that was last asked."""

    __slots__ = (
        "_asking",
        "_connections",
        "_ids",
        "_is_of_parts",
        "_is_told",
        "_may_ask",
        "_standing",
    )

    def __init__(self) -> None:
        self._ids: set[UUID] = set()
        self._asking: set[UUID] = set()
        self._may_ask = False
        self._connections = False
        self._is_of_parts = True
        """Whether nothing but parts was heard of."""
        self._standing = asyncio.Event()
        self._is_told = asyncio.Event()

    def hear(self, what: str | None) -> None:
        """Something changed: the run or thread of an id; None: anything may have."""
        if what is not None and len(self._ids) < MOST_KEPT:
            self._ids.add(UUID(what))
        self._hear_of_more()

    def hear_of_approvals(self, run_id: str | None) -> None:
        """What a run asks its person has changed; None: that of any may have."""
        if run_id is not None and len(self._asking) < MOST_KEPT:
            self._asking.add(UUID(run_id))
        self._may_ask = True
        self._hear_of_more()

    def take_approvals(self) -> frozenset[UUID] | None:
        """The runs of which that was heard, each once; None: it was not heard of any."""
        heard = frozenset(self._asking) if self._may_ask else None
        self._asking, self._may_ask = set(), False
        return heard

    def hear_of_connections(self) -> None:
        """Something changed about the person's connections to tool servers."""
        self._connections = True
        self._standing.set()
        self._hear_of_more()

    def take_connections(self) -> bool:
        """Whether it did since that was last asked."""
        heard, self._connections = self._connections, False
        self._standing.clear()
        return heard

    def hear_of_runtime(self) -> None:
        """A part of the service stands otherwise that everybody shares."""
        self._standing.set()
        self._is_told.set()

    def take_parts(self) -> bool:
        """Whether parts were heard of, and nothing else, since that was last asked."""
        if not (self._is_told.is_set() and self._is_of_parts):
            return False
        self._standing.clear()
        self._is_told.clear()
        return True

    async def wait_for_standing(self, seconds: float) -> bool:
        """Return when a connection or a part does, or after so long; whether one did."""
        try:
            async with asyncio.timeout(seconds):
                await self._standing.wait()
        except TimeoutError:
            return False
        return True

    async def wait(self, seconds: float | None) -> None:
        """Return when something was heard, or after so long; without an end if none is named."""
        try:
            async with asyncio.timeout(seconds):
                await self._is_told.wait()
        except TimeoutError:
            pass

    def take(self) -> frozenset[UUID]:
        """The ids that were heard, each once."""
        self._is_told.clear()
        self._is_of_parts = True
        heard, self._ids = frozenset(self._ids), set()
        return heard

    def _hear_of_more(self) -> None:
        self._is_of_parts = False
        self._is_told.set()


@dataclass(frozen=True, slots=True)
class RunChange:
    """How a run stands now."""

    run_id: UUID
    thread_id: UUID
    state: RunState
    updated_at: datetime


_COLUMNS = (runs.c.run_id, runs.c.thread_id, runs.c.state, runs.c.updated_at)


async def read_runs(tx: TenantRead, also: Collection[UUID] = ()) -> list[RunChange]:
    """The runs that are under way or wait, and those of the ids beside them, as they stand now."""
    is_open = runs.c.state.in_([state.value for state in OPEN])
    of_ids = runs.c.run_id.in_(list(also)[:MOST_KEPT])
    found = sa.union(
        sa.select(*_COLUMNS).where(is_open).limit(MOST_KEPT), sa.select(*_COLUMNS).where(of_ids)
    )
    rows = await tx.all(found)
    changes = [
        RunChange(row.run_id, row.thread_id, RunState(row.state), row.updated_at) for row in rows
    ]
    return sorted(changes, key=lambda change: change.updated_at)
