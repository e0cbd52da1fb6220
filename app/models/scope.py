"""Which run a piece of code works for: model calls are made in its name, and end with it."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from app.models.errors import ModelCallOutsideRun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.models.access import ModelAccess
    from tenancy.principal import ClaimedRun


class OpenCall(Protocol):
    """A model call under way."""

    def abort(self) -> None:
        """End it now; whoever reads it is told."""
        ...


class RunScope:
    """One attempt at one run, as far as its model calls are concerned.

    LangGraph hands the context on to its tasks and to the threads of nodes that are no coroutines,
    so whatever client a graph builds finds its run here.
    """

    def __init__(self, run: ClaimedRun, access: ModelAccess) -> None:
        self.run = run
        self.access = access
        self.loop = asyncio.get_running_loop()
        self._open: set[OpenCall] = set()
        self._closed = False

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Make model calls from here on those of this run."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def begin(self, call: OpenCall) -> None:
        """Take note of a call.

        Raises:
            ModelCallOutsideRun: the run has ended.
        """
        if self._closed:
            raise ModelCallOutsideRun
        self._open.add(call)

    def end(self, call: OpenCall) -> None:
        """Forget a call that has ended."""
        self._open.discard(call)

    def close(self) -> None:
        """End the calls that are under way, also those that threads wait for, and begin no more."""
        self._closed = True
        for call in tuple(self._open):
            call.abort()


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
