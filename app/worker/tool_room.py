"""Which tools the model is told of, where its window is too small for all. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from langchain_core.messages.utils import count_tokens_approximately

from app.tools.calls import AgentTool
from app.tools.described import described
from app.tools.servers import Unavailable

NO_ROOM = "no_room"
"""Why a server's tools, or some of them, are missing: the model's window is too small for all."""
MOST_MISFITS = 32
"""Tools for which there was no room, after which no more are looked at."""


def within_room(
    ours: Mapping[str, AgentTool],
    offered: Iterable[tuple[str, Callable[[], Sequence[AgentTool]]]],
    tokens: int,
) -> tuple[dict[str, AgentTool], list[Unavailable]]:
    """As many tools as the model's window has room for, ours first, and whose were left out.

    Nothing of a server's stands in the place of a tool of ours. ``offered`` are servers' names,
    each with what makes one tool of theirs: nobody looks at more once many did not fit.
    """
    tools = dict(ours)
    left = tokens - _cost(*ours.values())
    crowded_out: dict[str, Unavailable] = {}
    misfits = 0
    for server, bind in offered:
        if misfits == MOST_MISFITS:
            crowded_out[server] = Unavailable(server, NO_ROOM)
            continue
        for tool in bind():
            if tool.name in tools:
                continue
            if (cost := _cost(tool)) > left:
                misfits += 1
                crowded_out[server] = Unavailable(server, NO_ROOM)
                continue
            tools[tool.name] = tool
            left -= cost
    return tools, list(crowded_out.values())


def _cost(*tools: AgentTool) -> int:
    return count_tokens_approximately([], tools=[described(tool.tool) for tool in tools])
