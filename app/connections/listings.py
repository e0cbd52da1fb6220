"""Listings as they are stored: what a server said of its tools, and of what it lets be read."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.tools.readable import (
    NOTHING_SAID,
    ListedPrompt,
    ListedResource,
    PromptArgument,
    Readable,
)
from app.tools.servers import ListedTool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def to_stored(tools: Iterable[ListedTool]) -> list[dict[str, Any]]:
    """A listing as it is stored."""
    return [asdict(tool) for tool in tools]


def from_stored(stored: Iterable[dict[str, Any]]) -> tuple[ListedTool, ...]:
    """A listing that was stored."""
    return tuple(ListedTool(**each) for each in stored)


def readable_to_stored(readable: Readable) -> dict[str, Any]:
    """What may be read as it is stored: the parts that the server has said."""
    return {part: said for part, said in asdict(readable).items() if said is not None}


def readable_from_stored(stored: Mapping[str, Sequence[Mapping[str, Any]]] | None) -> Readable:
    """What was stored of what may be read."""
    if stored is None:
        return NOTHING_SAID
    resources, prompts = stored.get("resources"), stored.get("prompts")
    return Readable(
        None if resources is None else tuple(ListedResource(**each) for each in resources),
        None if prompts is None else tuple(_prompt(each) for each in prompts),
    )


def _prompt(stored: Mapping[str, Any]) -> ListedPrompt:
    arguments = tuple(PromptArgument(**each) for each in stored["arguments"])
    return ListedPrompt(**{**stored, "arguments": arguments})
