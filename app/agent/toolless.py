"""Models that call no tools are asked without: their people get answers all the same."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import structlog

from app.models.errors import ToolsUnsupported

if TYPE_CHECKING:
    from app.tools.calls import AgentTool

log = structlog.get_logger(__name__)

T = TypeVar("T")
Tool = TypeVar("Tool")

NO_TOOLS = "no_tools"
"""Why servers are missing for a model that calls none."""
OFFER_AGAIN_SECONDS = 300.0
"""After so long it is tried again: another model may have the name by then."""


class ToolOffer:
    """Whether a model is offered tools: until it says that it does not call any."""

    def __init__(self, model: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._model = model
        self._clock = clock
        self._refused_until = float("-inf")

    async def made(self, tools: Sequence[Tool], ask: Callable[[Sequence[Tool]], Awaitable[T]]) -> T:
        """Ask with the tools, or without where the model does not take them."""
        if not tools or self._clock() < self._refused_until:
            return await ask(())
        try:
            return await ask(tools)
        except ToolsUnsupported:
            self._refused_until = self._clock() + OFFER_AGAIN_SECONDS
            log.warning("a model calls no tools: it is asked without", model=self._model)
            return await ask(())


def unused_servers(tools: Iterable[AgentTool]) -> list[dict[str, str]]:
    """Whose tools the person has and the model does not call, as people are told of it."""
    servers = {tool.server for tool in tools if tool.server is not None}
    return [{"server": server, "reason": NO_TOOLS} for server in sorted(servers)]
