"""What was read of a server, as text: bounded, without secrets. Pure.

Whatever it says is data: it is quoted to the model, whatever instructions stand in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import mcp_types as types

from app.tools.mcp.results import bounded, size_of
from app.tools.redaction import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.tools.redaction import Redactor

MOST_PARTS = 50
NOTHING = "[It says nothing.]"
CUT = "[The rest was left out: it is too long.]"
_BETWEEN = "\n\n"


def text_of_resource(result: types.ReadResourceResult, redactor: Redactor, most_bytes: int) -> str:
    """What a resource says; of what is no text, its kind and size."""
    parts = (_contents(each, redactor) for each in result.contents[:MOST_PARTS])
    return _put_together(parts, redactor, most_bytes, is_cut=len(result.contents) > MOST_PARTS)


def text_of_prompt(result: types.GetPromptResult, redactor: Redactor, most_bytes: int) -> str:
    """What a prompt says; of several messages, with who would say each."""
    said = result.messages
    is_one = len(said) == 1
    parts = (
        _block(each.content, redactor, "" if is_one else f"{each.role}: ")
        for each in said[:MOST_PARTS]
    )
    return _put_together(parts, redactor, most_bytes, is_cut=len(said) > MOST_PARTS)


def _put_together(
    parts: Iterator[str], redactor: Redactor, most_bytes: int, *, is_cut: bool
) -> str:
    """The parts as one text, of so many bytes at most with the note that something is missing."""
    left = most_bytes - len((_BETWEEN + CUT).encode())
    kept: list[str] = []
    for part in parts:
        text, is_short = _within(part, left, redactor)
        kept += [text] if text else []
        left -= len((text + _BETWEEN).encode())
        if is_short:
            is_cut = True
            break
    if is_cut:
        kept.append(CUT)
    return _BETWEEN.join(kept) or NOTHING


def _within(text: str, most_bytes: int, redactor: Redactor) -> tuple[str, bool]:
    said, is_cut = bounded(text, max(0, most_bytes), redactor)
    written = said.encode()
    if len(written) <= most_bytes:
        return said, is_cut
    return written[: max(0, most_bytes)].decode(errors="ignore"), True


def _contents(
    contents: types.TextResourceContents | types.BlobResourceContents, redactor: Redactor
) -> str:
    if isinstance(contents, types.TextResourceContents):
        return contents.text
    return _left_out("content", contents.mime_type, contents.blob, redactor)


def _block(block: types.ContentBlock, redactor: Redactor, said_by: str) -> str:
    match block:
        case types.TextContent():
            return said_by + block.text
        case types.ImageContent():
            return said_by + _left_out("image", block.mime_type, block.data, redactor)
        case types.AudioContent():
            return said_by + _left_out("audio", block.mime_type, block.data, redactor)
        case types.EmbeddedResource():
            return said_by + _contents(block.resource, redactor)
        case types.ResourceLink():
            return said_by + f"[Link: {shown(block.title or block.name, 200, redactor)}]"


def _left_out(what: str, kind: str | None, data: str, redactor: Redactor) -> str:
    named = shown(kind, 60, redactor) or "unknown type"
    return f"[Left out: {what}, {named}, {size_of(data):,} bytes]"
