"""What one run's agent works with beside its model: tools and memory, bound to its user.

The graph is compiled once for everybody; what belongs to one person comes with the run, through a
ContextVar that LangGraph hands on to its tasks, as the run's way to the model does. Nothing of it
is in a configuration, a checkpoint, or within the model's reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from app.tools.calls import AgentTool, EarlierCalls
from app.tools.servers import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.agent.gate import Permissions
    from app.agent.mentioned import Quoted
    from app.agent.speakers import Speaker


class Recall(Protocol):
    """Finds what is remembered about the run's user."""

    async def recall(self, said: str, tokens: int) -> Sequence[str]:
        """The memories that matter to what was said, best first, within so many tokens."""
        ...


class Mentions(Protocol):
    """Reads what the run's user points at."""

    async def read(self, refs: Sequence[str]) -> Sequence[Quoted]:
        """What there is to say of each, in their order; what cannot be read says so."""
        ...


@dataclass(frozen=True, slots=True)
class Equipment:
    """One run's tools and memory."""

    tools: Mapping[str, AgentTool] = field(default_factory=dict)
    missing: Sequence[Unavailable] = ()
    """Servers whose tools would be there if they could be reached."""
    memory: Recall | None = None
    mentions: Mentions | None = None
    speaker: Speaker | None = None
    """The model that the run has chosen; None: the graph's own."""
    sees_images: bool = False
    """Whether the model reads images that tools show."""
    slots: asyncio.Semaphore | None = None
    """How many of its calls are made at once; None: any number."""
    earlier: EarlierCalls | None = None
    """What came of calls of tools that are not here now."""
    permissions: Permissions | None = None
    """What the person has approved for the rest of the thread; None: nothing."""

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let the graph that runs within find this."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_NOTHING = Equipment()
_current: ContextVar[Equipment] = ContextVar("equipment", default=_NOTHING)


def equipment() -> Equipment:
    """The equipment of the run that this code works for; nothing, where there is none."""
    return _current.get()
