"""A run's log as the frames of a stream: what is stored, what is missing, what is to come."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.api import sse
from app.runs.large_work import json_in_turn
from app.runs.referenced import GoneEvent
from tenancy.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection
    from uuid import UUID

    from app.api.services import Services
    from app.runs.events import LogPage
    from app.runs.runs import Run
    from tenancy.principal import Principal


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a run's stream a client wants to read."""

    after: int = 0
    """The last event that the client has."""
    last: int | None = None
    """The last event in the log, where the client named one of its own."""
    modes: Collection[str] | None = None
    """Stream modes; None means everything."""
    subgraphs: bool = True
    """Whether those of graphs within the graph, too."""
    id_of: Callable[[int], str] = str
    """What an event's place in the log is called on this stream."""
    end_of: Callable[[UUID, RunState, int], bytes] = sse.end_frame
    """What is said at the run's end, by its state and its last event."""


def follow_run(
    services: Services, principal: Principal, run: Run, after: int = 0
) -> AsyncGenerator[LogPage, None]:
    """The pages of a run's log, to its end."""
    queued = run.state is RunState.PENDING
    return services.tail.follow(principal, run.run_id, after, queued=queued)


async def present_values(services: Services, principal: Principal, thread_id: UUID) -> bytes:
    """What a thread holds now."""
    state = await services.history.state(principal, thread_id)
    return await json_in_turn(principal.user_id, state["values"])


class RunFrames:
    """One reader's way through a run's log: each event once, then the run's end.

    What the log has no more, or never had, is told by a ``gap``, and once by the thread's present
    values.
    """

    def __init__(self, services: Services, principal: Principal, run: Run, wanted: Wanted) -> None:
        self._services = services
        self._principal = principal
        self._run = run
        self._wanted = wanted
        self._told_pruned = 0
        self._told_values = False
        self.after = wanted.after
        """The last event that was read."""
        self.state = run.state
        """How the run stood then."""

    async def all(self) -> AsyncGenerator[bytes, None]:
        """Yield the frames as they come.

        Raises:
            RunNotFound: the run was deleted meanwhile.
        """
        last = self._wanted.last
        if last is not None and self.after > last:
            async for frame in self._gap(self.after, last):
                yield frame
            self.after = last
        pages = follow_run(self._services, self._principal, self._run, self.after)
        async with aclosing(pages):
            async for page in pages:
                async for frame in self._page(page):
                    yield frame
                self.state = page.state
                if page.is_last:
                    yield self._wanted.end_of(self._run.run_id, page.state, self.after)

    async def _page(self, page: LogPage) -> AsyncGenerator[bytes, None]:
        modes = self._wanted.modes
        dropped = page.dropped_through
        pruned = max(dropped, page.pruned_through if sse.wants_deltas(modes) else 0)
        if pruned > max(self.after, self._told_pruned):
            self._told_pruned = pruned
            goes_on = max(self.after, dropped)
            async for frame in self._gap(self.after, goes_on, pruned_through=pruned):
                yield frame
            self.after = goes_on
        wanted = (event for event in page.events if sse.is_wanted(event.event, modes))
        events = (event for event in wanted if self._wanted.subgraphs or "|" not in event.event)
        filled = self._services.states.fill(self._principal, self._run, events)
        async with aclosing(filled):
            async for event in filled:
                if isinstance(event, GoneEvent):
                    async for frame in self._gap(event.seq - 1, event.seq):
                        yield frame
                else:
                    frame = sse.event_frame(event, self._wanted.id_of(event.seq))
                    del event  # while the client takes it, one of the two is enough
                    yield frame
        self.after = page.events[-1].seq if page.events else self.after

    async def _gap(self, after: int, goes_on: int, **why: int) -> AsyncGenerator[bytes, None]:
        yield sse.gap_frame(after, goes_on, self._wanted.id_of(goes_on), **why)
        if not self._told_values:
            self._told_values = True
            values = await present_values(self._services, self._principal, self._run.thread_id)
            yield sse.state_frame(values)
