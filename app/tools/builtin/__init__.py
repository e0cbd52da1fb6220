"""Tools that come with the service, beside memory."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from functools import lru_cache

from app.tools.builtin.clock import clock_tools
from app.tools.builtin.fetch import Fetcher, fetch_tool
from app.tools.builtin.robots import RobotsMemory
from app.tools.builtin.visits import Visits
from app.tools.calls import AgentTool

_ROBOTS = RobotsMemory()


def builtin_tools(
    names: Collection[str],
    *,
    visitor: Hashable = None,
    visits: Visits | None = None,
    trusted: frozenset[str] = frozenset(),
) -> list[AgentTool]:
    """The tools that the settings name (``STOA_BUILTIN_TOOLS``), ready to be called.

    ``visitor`` is whoever they act for: what is remembered of sites is kept apart for each.
    ``visits`` says when they are asked before a host is visited; None: never.
    ``trusted`` are origins that may be fetched from wherever they are; the operator's to say.
    """
    tools = list[AgentTool]()
    if "fetch" in names:
        leaves_host = visits is None or visits.are_free
        fetcher = Fetcher(visitor=visitor, memory=_ROBOTS, trusted=trusted, leaves_host=leaves_host)
        tools.append(fetch_tool(fetcher, visits))
    if "time" in names:
        tools += _clock()
    return tools


@lru_cache(maxsize=1)
def _clock() -> tuple[AgentTool, ...]:
    """The same for everybody. To make them costs some milliseconds."""
    return tuple(clock_tools())
