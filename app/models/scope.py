"""Which run a piece of code works for: model calls are made in its name, and end with it."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from app.models.errors import ModelCallOutsideRun
from app.request_id import current_request_id
from app.stopping import take_error

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from app.models.access import ModelAccess
    from tenancy.principal import ClaimedRun


class RunScope:
    """One attempt at one run, as far as its model calls are concerned.

    LangGraph hands the context on to its tasks and to the threads of nodes that are no coroutines,
    so whatever client a graph builds finds its run here.
    """

    def __init__(self, run: ClaimedRun, access: ModelAccess) -> None:
        self.run = run
        self.access = access
        self.request_id = current_request_id()
        self.loop = asyncio.get_running_loop()
        self._calls: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Make model calls from here on those of this run."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def start(self, call: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Carry a call out in a task of its own, which ends with the run at the latest.

        Raises:
            ModelCallOutsideRun: the run has ended.
        """
        if self._is_closed:
            call.close()
            raise ModelCallOutsideRun
        task = asyncio.create_task(call, name=name)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        task.add_done_callback(self._ending.discard)
        task.add_done_callback(take_error)
        return task

    def close(self) -> None:
        """End the calls that are under way, whoever waits for them, and begin no more."""
        self._is_closed = True
        for call in tuple(self._calls):
            self.end(call)

    def end(self, call: asyncio.Task[None]) -> None:
        """End one of its calls, whoever else does: cut off as it closes its connection, it can't.

        The model would go on for nobody.
        """
        if call not in self._ending and not call.done():
            self._ending.add(call)
            call.cancel()

    async def ended(self, seconds: float) -> None:
        """Wait until nothing of the run's calls is open any more, or the time is over."""
        if self._calls:
            await asyncio.wait(tuple(self._calls), timeout=seconds)


_current: ContextVar[RunScope] = ContextVar("run_scope")


def current_scope() -> RunScope:
    """The run that this code works for.

    Raises:
        ModelCallOutsideRun: it works for none.
    """
    try:
        return _current.get()
    except LookupError:
        raise ModelCallOutsideRun from None
