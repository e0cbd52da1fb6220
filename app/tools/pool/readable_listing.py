"""What a server lists of resources and prompts, within bounds: titles are made fit to be shown."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from app.tools.readable import ListedPrompt, ListedResource, PromptArgument
from app.tools.redaction import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import mcp_types

    from app.tools.redaction import Redactor

MAX_LISTED = 256
"""Of each kind."""
MOST_LOOKED_AT = 1024
MAX_URI = 1024
MAX_NAME = 128
MAX_TITLE = 200
MAX_DESCRIPTION = 500
MAX_MIME_TYPE = 100
MAX_ARGUMENTS = 16
MAX_BYTES = 128 * 1024
"""Of all texts of one kind together."""

L = TypeVar("L", ListedResource, ListedPrompt)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kept(Generic[L]):
    """What may be offered, and how many were left out for what they are."""

    listed: tuple[L, ...]
    left_out: int


def resources_within_bounds(
    resources: Sequence[mcp_types.Resource], redactor: Redactor
) -> Kept[ListedResource]:
    """The resources that are offered, each once, as much of them as there is room for."""
    return _kept(resources, lambda each: _resource(each, redactor), lambda each: each.uri)


def prompts_within_bounds(
    prompts: Sequence[mcp_types.Prompt], redactor: Redactor
) -> Kept[ListedPrompt]:
    """The prompts that are offered; as for resources."""
    return _kept(prompts, lambda each: _prompt(each, redactor), lambda each: each.name)


def _kept(
    listed: Sequence[T], read: Callable[[T], L | None], key_of: Callable[[L], str]
) -> Kept[L]:
    kept: dict[str, L] = {}
    size = 0
    for each in listed[:MOST_LOOKED_AT]:
        found = read(each)
        if found is None or key_of(found) in kept:
            continue
        weight = len(json.dumps(asdict(found)))
        if len(kept) == MAX_LISTED or size + weight > MAX_BYTES:
            continue
        kept[key_of(found)] = found
        size += weight
    return Kept(tuple(kept.values()), len(listed) - len(kept))


def _resource(said: mcp_types.Resource, redactor: Redactor) -> ListedResource | None:
    """One resource; None where it cannot be asked for, or stored, by what it is known by."""
    if not _is_usable(said.uri, MAX_URI, redactor):
        return None
    name = shown(said.name, MAX_NAME, redactor)
    return ListedResource(
        said.uri,
        name or said.uri[:MAX_NAME],
        shown(said.title, MAX_TITLE, redactor) or None,
        shown(said.description, MAX_DESCRIPTION, redactor),
        shown(said.mime_type, MAX_MIME_TYPE, redactor) or None,
    )


def _prompt(said: mcp_types.Prompt, redactor: Redactor) -> ListedPrompt | None:
    arguments = said.arguments or []
    if not _is_usable(said.name, MAX_NAME, redactor) or len(arguments) > MAX_ARGUMENTS:
        return None
    return ListedPrompt(
        said.name,
        shown(said.title, MAX_TITLE, redactor) or None,
        shown(said.description, MAX_DESCRIPTION, redactor),
        tuple(_arguments(arguments, redactor)),
    )


def _arguments(
    said: Iterable[mcp_types.PromptArgument], redactor: Redactor
) -> Iterable[PromptArgument]:
    for each in said:
        yield PromptArgument(shown(each.name, MAX_NAME, redactor), bool(each.required))


def _is_usable(key: str, longest: int, redactor: Redactor) -> bool:
    """Whether something can be known by this: it is sent back to its server to the letter."""
    return 0 < len(key) <= longest and key.isprintable() and not redactor.holds_secret([key])
