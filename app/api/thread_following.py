"""Following a thread over HTTP: its runs' events, one run after the other, as long as one likes."""

from __future__ import annotations

import re
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from uuid import UUID

import orjson

from app.api import sse
from app.api.frames import RunFrames, Wanted, present_values
from app.api.live import LiveResponse
from app.api.refusals import MalformedRequest
from app.runs.log_position import last_seq
from app.runs.runs import get_run
from app.runs.sequence import due_in, last_ended, run_after
from app.runs.states import wire_status
from app.runs.tail import POLL_SECONDS, run_key, thread_key, wait_for
from tenancy.errors import NotFound, RunNotFound
from tenancy.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection
    from datetime import datetime

    from app.api.services import Services
    from app.runs.runs import Run
    from tenancy.principal import Principal

ThreadStreamMode = Literal["run_modes", "lifecycle", "state_update"]

_POSITION = re.compile(
    r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}):(0|[1-9][0-9]{0,8})(:done)?"
)
_EVENTS: dict[ThreadStreamMode, frozenset[str]] = {
    "lifecycle": frozenset(),
    "state_update": frozenset({"values", "updates"}),
}


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a thread's stream: after an event of a run, or after what was said at its end."""

    run_id: UUID
    seq: int
    is_done: bool = False

    def __str__(self) -> str:
        return f"{self.run_id}:{self.seq}{':done' * self.is_done}"


FROM_THE_FIRST = "-1"


def parse_position(value: str | None) -> Position | Literal["-1"] | None:
    """Where to go on; None for what is open now, and what comes.

    Raises:
        MalformedRequest: it is not an id that a thread's stream has.
    """
    if not value:
        return None
    if value == FROM_THE_FIRST:
        return "-1"
    found = _POSITION.fullmatch(value)
    if found is None:
        raise MalformedRequest("Last-Event-ID is not an id of this stream.")
    return Position(UUID(found[1]), int(found[2]), found[3] is not None)


def events_of(modes: Collection[ThreadStreamMode]) -> frozenset[str] | None:
    """The runs' stream modes that make up a thread's; None means all. Beginnings always come."""
    if "run_modes" in modes:
        return None
    return frozenset().union(*(_EVENTS[mode] for mode in modes))


async def stream_thread(
    services: Services,
    principal: Principal,
    thread_id: UUID,
    position: Position | Literal["-1"] | None,
    events: frozenset[str] | None,
) -> LiveResponse:
    """Answer with the events of a thread's runs, those stored and those to come.

    Raises:
        ThreadNotFound: the user has no such thread.
    """
    async with services.database.reading(principal) as tx:
        before = await last_ended(tx, thread_id)
    follower = _ThreadFollower(services, principal, thread_id, events)
    if isinstance(position, Position):
        frames = follower.after(position, before)
    else:
        frames = follower.since(before if position is None else None)
    return LiveResponse(
        _until_deleted(frames),
        media_type=sse.MEDIA_TYPE,
        beat=sse.HEARTBEAT,
        expires_at=principal.identity.expires_at,
        closing=services.streams.closing_for(principal.user_id),
        headers={"Location": f"/threads/{thread_id}/stream", "X-Accel-Buffering": "no"},
    )


async def _until_deleted(frames: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(frames):
            async for frame in frames:
                yield frame
    except NotFound as error:
        yield sse.error_frame(error.code, str(error))


class _ThreadFollower:
    """One reader's way through a thread's runs."""

    def __init__(
        self,
        services: Services,
        principal: Principal,
        thread_id: UUID,
        events: frozenset[str] | None,
    ) -> None:
        self._services = services
        self._principal = principal
        self._thread_id = thread_id
        self._events = events

    async def since(self, before: datetime | None) -> AsyncGenerator[bytes, None]:
        """The events of all runs that were due after a moment, each once it is."""
        key = thread_key(self._principal.user_id, self._thread_id)
        with self._services.tail.subscribed(key) as changed:
            while True:
                changed.clear()
                run, pause = await self._next(before)
                if run is None:
                    await wait_for(changed, pause)
                    continue
                async for frame in self._while_there(run, Position(run.run_id, 0)):
                    yield frame
                before = run.due_at

    async def _while_there(self, run: Run, position: Position) -> AsyncGenerator[bytes, None]:
        """A run's events, as far as they came before it was deleted: its thread goes on."""
        try:
            async with aclosing(self._of_run(run, position)) as frames:
                async for frame in frames:
                    yield frame
        except RunNotFound:
            return

    async def after(self, position: Position, last: datetime | None) -> AsyncGenerator[bytes, None]:
        """The events after one of them; those since ``last`` if its run was deleted."""
        try:
            run = await self._run(position.run_id)
        except RunNotFound:
            async for frame in self._gap(position):
                yield frame
        else:
            async for frame in self._while_there(run, position):
                yield frame
            last = run.due_at
        async with aclosing(self.since(last)) as following:
            async for frame in following:
                yield frame

    async def _of_run(self, run: Run, position: Position) -> AsyncGenerator[bytes, None]:
        """A run's events after a position, until it has ended: not while it only waits."""
        done_at = position.seq if position.is_done else None
        after = position.seq
        key = run_key(self._principal.user_id, run.run_id)
        with self._services.tail.subscribed(key) as changed:
            while True:
                changed.clear()
                frames = RunFrames(
                    self._services, self._principal, run, await self._wanted(run, after, done_at)
                )
                async with aclosing(frames.all()) as every:
                    async for frame in every:
                        if frame:
                            yield frame
                after = done_at = frames.after
                if frames.state is not RunState.WAITING:
                    return
                await wait_for(changed)

    async def _wanted(self, run: Run, after: int, done_at: int | None) -> Wanted:
        async with self._services.database.reading(self._principal) as tx:
            last = await last_seq(tx, run.run_id) if after else None

        def done(run_id: UUID, state: RunState, seq: int) -> bytes:
            return b"" if seq == done_at else _done_frame(Position(run_id, seq, True), state)

        return Wanted(
            after,
            last,
            self._events,
            id_of=lambda seq: str(Position(run.run_id, seq)),
            end_of=done,
        )

    async def _gap(self, position: Position) -> AsyncGenerator[bytes, None]:
        data = {"asked_after": str(position), "continues_after": None}
        yield b"event: gap\ndata: %b\n\n" % orjson.dumps(data)
        values = await present_values(self._services, self._principal, self._thread_id)
        yield sse.state_frame(values)

    async def _run(self, run_id: UUID) -> Run:
        async with self._services.database.reading(self._principal) as tx:
            return await get_run(tx, self._thread_id, run_id)

    async def _next(self, before: datetime | None) -> tuple[Run | None, float]:
        """The next run that is due, and when to look for another."""
        async with self._services.database.reading(self._principal) as tx:
            run = await run_after(tx, self._thread_id, before)
            left = await due_in(tx, self._thread_id) if run is None else None
        return run, POLL_SECONDS if left is None else min(POLL_SECONDS, left)


def _done_frame(position: Position, state: RunState) -> bytes:
    data = {"run_id": str(position.run_id), "status": wire_status(state)}
    told = (orjson.dumps(data), str(position).encode())
    return b"event: run_done\ndata: %b\nid: %b\n\n" % told
