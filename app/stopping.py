"""How a run under way is told to stop, and how its nodes say what they make of it.

LangGraph stops at the next step boundary once ``request_drain`` was called, with everything that
the step wrote committed. A node that can do better than be waited for *heeds* this as well: it ends
its model call at once and returns what came of it. A graph none of whose nodes heeds it is stopped
by cancelling its task.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langgraph.runtime import RunControl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langgraph.runtime import Runtime

    from tenancy.errors import StoaError


class RunStop(RunControl):
    """One attempt's way of being stopped. Used on the event loop only."""

    __slots__ = ("cancelled", "failure", "finishing", "heeded")

    def __init__(self) -> None:
        super().__init__()
        self.cancelled = asyncio.Event()
        """Set once what is under way should end now, whatever has come of it."""
        self.heeded = False
        """Whether a node of this graph knows how to stop by itself."""
        self.finishing: tuple[str, ...] = ()
        """Names of the tools whose calls must not be cut off and are under way."""
        self.failure: StoaError | None = None
        """Why the run ends in failure, where a node says so after having kept what it had."""

    def drain(self) -> None:
        """Stop after the step under way."""
        self.request_drain("drain")

    def cancel(self) -> None:
        """Stop now: model calls and calls that only read end, what they had is kept."""
        self.request_drain("cancel")
        self.cancelled.set()

    def fail(self, failure: StoaError) -> None:
        """Called by a node: commit what this step wrote, then end the run with this failure."""
        self.failure = failure
        self.request_drain("failure")

    @contextmanager
    def uninterrupted(self, tool: str) -> Iterator[None]:
        """A call to this tool is under way and is waited for, since it may change the world."""
        self.finishing = (*self.finishing, tool)
        try:
            yield
        finally:
            left = list(self.finishing)
            left.remove(tool)
            self.finishing = tuple(left)


def stop_of(runtime: Runtime[Any]) -> RunStop | None:
    """The node's way of being stopped, heeded from now on; None outside a worker of ours."""
    control = runtime.control
    if not isinstance(control, RunStop):
        return None
    control.heeded = True
    return control


async def until_done_or_cancelled(
    task: asyncio.Task[Any], stop: RunStop | None, seconds: float | None = None
) -> None:
    """Return when the task has ended, its run is to stop now, or the time is over."""
    waiting: set[asyncio.Task[Any]] = {task}
    cancelled = None if stop is None else asyncio.create_task(stop.cancelled.wait())
    if cancelled is not None:
        waiting.add(cancelled)
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if cancelled is not None:
            cancelled.cancel()


async def end_task(task: asyncio.Task[Any], seconds: float | None = None) -> BaseException | None:
    """Cancel a task unless it has ended, wait for its end, and return what it ended with.

    One that takes no notice is left to itself after so many ``seconds``.
    """
    task.add_done_callback(take_error)
    task.cancel()
    await asyncio.wait({task}, timeout=seconds)
    if not task.done() or task.cancelled():
        return asyncio.CancelledError()
    return task.exception()


def take_error(task: asyncio.Task[Any]) -> None:
    """Nobody may ask any more: asyncio would write the error, and what it quotes, to the log."""
    if not task.cancelled():
        task.exception()
