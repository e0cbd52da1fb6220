"""What the model is told beside a call's result: what was otherwise than it may think. Pure.

The thread keeps the result as the tool gave it, and the notes as codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from app.tools.outcomes import METADATA

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import ToolMessage

NOTES = "notes"
"""Where they are among what a message says of its call."""
EDITED: Final = "edited"
GRAPH: Final = "graph"
MEMORY: Final = "memory"

_TEXTS: Final = {
    EDITED: "The person changed this call's arguments; it was made with theirs.",
    GRAPH: "This assistant was changed between this call and the person's approval of it.",
    MEMORY: "What is remembered about the person was changed between this call and their approval.",
}


def with_notes(result: ToolMessage, notes: Sequence[str]) -> ToolMessage:
    """The result with its notes."""
    if not notes:
        return result
    said: Mapping[str, Any] = result.response_metadata.get(METADATA, {})
    metadata = {**result.response_metadata, METADATA: {**said, NOTES: list(notes)}}
    return result.model_copy(update={"response_metadata": metadata})


def notes_in(result: ToolMessage) -> str:
    """A result's notes in words for the model, each a line of its own."""
    said = result.response_metadata.get(METADATA, {})
    codes = said.get(NOTES) if isinstance(said, dict) else None
    known = [code for code in codes if code in [*_TEXTS]] if isinstance(codes, list) else []
    return "".join(f"[{_TEXTS[code]}]\n" for code in known)
