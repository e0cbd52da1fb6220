"""Stores what a run streams: the first event and the first delta at once, then in flushes.

One task per run flushes; emitting never waits for the database unless too much is pending.
Flushes come every 50 ms, and up to every 200 ms while the database is slow to take them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from app.runs.events import Event, append_events, settle_run
from app.runs.tail import run_key
from app.worker.handover import EventsFlooded
from app.worker.parts import EventBuffer
from tenancy.database.retry import while_database_is_away

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from app.runs.events import CheckpointRef
    from app.worker.outcome import Outcome
    from app.worker.parts import Part
    from app.worker.states import Checkpoints
    from tenancy.database.signals import Announcer
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun

FLUSH_SECONDS = 0.05
SLOWEST_FLUSH_SECONDS = 0.2
MOST_PENDING = 1000
"""Events a run may have emitted and not stored; past it, the graph waits."""
MOST_PENDING_BYTES = 16_000_000
"""The same of their bytes, and of those that are being stored."""
FLOOD = 10
"""So many times that, and the run ends: what does not wait can only be stopped."""
_BACKOFF = 10
"""A flush that took t is followed by a pause of at least 10 t: a slow database is asked less."""


class EventWriter:
    """Writes one run's events, under its fence, and its outcome."""

    def __init__(
        self,
        database: TenantDatabase,
        announcer: Announcer,
        run: ClaimedRun,
        next_seq: int,
        modes: Sequence[str],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._database = database
        self._announcer = announcer
        self._run = run
        self._key = run_key(run.user_id, run.run_id)
        self._next_seq = next_seq
        self._buffer = EventBuffer(modes)
        self._storing: list[Event] = []
        self._storing_bytes = 0
        self._on_failure = on_failure
        self._pending = asyncio.Event()
        self._flushed = asyncio.Event()
        self._stopping = False
        self._flooded = False
        self._hurry = asyncio.Event()
        self._streaming = False
        self._task = asyncio.create_task(self._flush_for_ever(), name=f"events {run.run_id}")

    def refer_to(self, checkpoints: Checkpoints, persisted: Collection[str]) -> None:
        """Let states leave out the persisted channels' values where a checkpoint holds them."""
        self._buffer.refer_to(checkpoints, persisted)

    def emit_state(self, values: Mapping[str, Any], ref: CheckpointRef) -> None:
        """Add the ``values`` of a checkpoint."""
        self._buffer.add_state(values, ref)
        self._pending.set()

    def checkpoints_changed(self) -> None:
        """Look whether a state that waited for its checkpoint can be stored now."""
        self._buffer.look()
        self._pending.set()

    def emit(self, event: Event) -> None:
        """Add a frozen event."""
        self._buffer.add(event)
        self._pending.set()

    def offer_part(self, part: Part) -> bool:
        """Add what the graph streamed, and wait for nothing; False while too much is pending.

        Deltas are merged, all else is frozen before this returns. Once this is closed, it is
        nobody's any more.

        Raises:
            EventsFlooded: far too much is pending: it was not added, and the run ends.
        """
        if self._stopping:
            return False
        if self._flooded or self.is_flooded():
            self.flooded()
            raise EventsFlooded
        self._buffer.add_part(part)
        self._pending.set()
        if part[1] == "messages" and not self._streaming:
            self._streaming = True
            self._hurry.set()
        has_room = not self.is_full()
        if not has_room:
            self._hurry.set()
        return has_room

    async def emit_part(self, part: Part) -> None:
        """Add what the graph streamed; waits while too much is pending.

        Raises:
            EventsFlooded: see :meth:`offer_part`.
        """
        self.offer_part(part)
        await self.room()

    async def room(self) -> None:
        """Wait while too much is pending, and no longer than there is anybody to store it."""
        while self.is_full() and not self._task.done():
            self._buffer.give_up()  # what would come next, the checkpoint's name, must not wait
            self._flushed.clear()
            await self._flushed.wait()

    def is_full(self, events: int = 0, size: int = 0) -> bool:
        """Whether too much is pending, with so many events and bytes more; from any thread."""
        return self._exceeds(1, events, size)

    def is_flooded(self, events: int = 0, size: int = 0) -> bool:
        """Whether far too much is; from any thread."""
        return self._exceeds(FLOOD, events, size)

    def flooded(self) -> None:
        """End the run, since what it emits can neither be stored nor waited for."""
        if not self._flooded and not self._stopping:
            self._flooded = True
            self._on_failure(EventsFlooded())

    def _exceeds(self, times: int, events: int, size: int) -> bool:
        events += len(self._buffer)
        size += self._buffer.size + self._storing_bytes
        return events > times * MOST_PENDING or size > times * MOST_PENDING_BYTES

    async def settle(
        self,
        outcome: Outcome,
        tool_calls: int = 0,
        asked: Sequence[Mapping[str, Any]] = (),
        expire_seconds: float = 0.0,
    ) -> None:
        """Store what is left together with the run's outcome, and how many tools it called.

        ``asked`` is what its person has to decide, within so many seconds; see
        :func:`app.runs.events.settle_run`.

        Raises:
            LeaseLost: the run is another worker's; nothing was written.
            DatabaseUnavailable: Postgres stayed away longer than it is worth waiting.
        """
        await self.stop()
        self._take_all()
        while len(piece := self._next_piece()) < len(self._storing):
            await self._append(piece)
        try:
            await while_database_is_away(
                settle_run,
                self._database,
                self._run,
                outcome.state,
                self._next_seq,
                piece,
                error_code=outcome.code,
                error_message=outcome.message,
                tool_calls=tool_calls,
                approvals=asked,
                expire_seconds=expire_seconds,
            )
        finally:
            # Also where it fails: the commit may have come about and only its answer been lost.
            self._announce()
            if asked:
                self._announcer.approval_changed(self._key)

    async def flush(self) -> None:
        """Store what is left of a run that another attempt goes on with.

        Raises:
            LeaseLost: the run is another worker's; nothing was written.
            DatabaseUnavailable: Postgres stayed away longer than it is worth waiting.
        """
        await self.stop()
        await self._flush()

    async def stop(self) -> None:
        """End the flushing task; a flush under way is finished first."""
        self._stopping = True
        self._pending.set()
        self._hurry.set()
        await asyncio.gather(self._task, return_exceptions=True)
        self._buffer.give_up()

    async def _flush_for_ever(self) -> None:
        clock = asyncio.get_running_loop().time
        flush_seconds = 0.0  # the `metadata` event was stored as the attempt began
        try:
            while True:
                await self._let_pile_up(flush_seconds)
                await self._pending.wait()
                if self._stopping:
                    return
                self._pending.clear()
                started = clock()
                await self._flush()
                flush_seconds = clock() - started
        except Exception as error:  # noqa: BLE001 - told to the run, which ends itself
            self._on_failure(error)
        finally:
            self._flushed.set()

    async def _flush(self) -> None:
        self._take_all()
        while self._storing:
            await self._append(self._next_piece())

    def _take_all(self) -> None:
        """Kept until it is known that they are stored: if that fails, the outcome brings them."""
        self._storing = [*self._storing, *self._buffer.take()]
        self._storing_bytes = sum(len(event.data) for event in self._storing)

    def _next_piece(self) -> Sequence[Event]:
        """As much of what is to be stored as one statement takes."""
        size = 0
        for count, event in enumerate(self._storing[:MOST_PENDING]):
            size += len(event.data)
            if count and size > MOST_PENDING_BYTES:
                return self._storing[:count]
        return self._storing[:MOST_PENDING]

    async def _append(self, piece: Sequence[Event]) -> None:
        await while_database_is_away(
            append_events, self._database, self._run, self._next_seq, piece
        )
        self._next_seq += len(piece)
        self._storing = self._storing[len(piece) :]
        self._storing_bytes -= sum(len(event.data) for event in piece)
        self._flushed.set()
        self._announce()

    async def _let_pile_up(self, flush_seconds: float) -> None:
        """Pause before the next flush, unless the run ends or begins to answer meanwhile."""
        pause = min(max(FLUSH_SECONDS, _BACKOFF * flush_seconds), SLOWEST_FLUSH_SECONDS)
        try:
            async with asyncio.timeout(pause):
                await self._hurry.wait()
        except TimeoutError:
            pass
        if not self._stopping:
            self._hurry.clear()

    def _announce(self) -> None:
        self._announcer.run_changed(self._key)
