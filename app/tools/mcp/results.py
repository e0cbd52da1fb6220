"""What a server answered, as the content of a message: bounded, without secrets. Pure.

Whatever a tool says is data of the tool. It becomes the content of a tool's message and of nothing
else, whatever instructions stand in it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types

from app.tools.texts import shortened, storable

if TYPE_CHECKING:
    from app.tools.redaction import Redactor

T = TypeVar("T")
Content = str | list[str | dict[str, Any]]

MOST_CHARACTERS = 60_000
"""Of all text of one result."""
MOST_BLOCKS = 50
MOST_IMAGES = 4
MOST_IMAGE_BYTES = 512 * 1024
DEEPEST = 16
"""Levels of a structured result."""
MOST_NODES = 10_000
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})

NOTHING = "The tool answered without saying anything."
CUT = "[The rest of the result was left out: it is too long.]"


@dataclass(slots=True)
class Room:
    """What all results of one run may hold yet: they stay in its thread, and in every state."""

    characters: int = 4_000_000
    image_bytes: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What becomes of a result in the conversation."""

    content: Content
    is_error: bool
    is_cut: bool
    """Whether something was left out for its size."""


def read_result(
    result: types.CallToolResult, redactor: Redactor, room: Room | None = None
) -> Answer:
    """Everything of a result that a conversation can hold; what it cannot is named.

    ``room`` is the run's, and becomes less.
    """
    reading = _Reading(redactor, room or Room())
    for block in result.content[:MOST_BLOCKS]:
        reading.add(block)
    if len(result.content) > MOST_BLOCKS:
        reading.cut()
    if result.structured_content is not None:
        reading.add_structure(result.structured_content)
    return Answer(reading.content(), result.is_error, reading.is_cut)


@dataclass(slots=True)
class _Reading:
    """A result on its way."""

    redactor: Redactor
    room: Room
    is_cut: bool = False
    _texts: list[str] = field(default_factory=list)
    _images: list[dict[str, Any]] = field(default_factory=list)
    _left: int = MOST_CHARACTERS

    def content(self) -> Content:
        """The content, as a text where it is nothing else."""
        texts = [*self._texts, CUT] if self.is_cut else self._texts
        text = "\n\n".join(each for each in texts if each)
        if not self._images:
            return text or NOTHING
        return [*([{"type": "text", "text": text}] if text else []), *self._images]

    def add(self, block: types.ContentBlock) -> None:
        """Take one block."""
        match block:
            case types.TextContent():
                self._say(block.text)
            case types.ImageContent():
                self._show(block.data, block.mime_type)
            case types.AudioContent():
                self._leave_out("audio", block.mime_type, block.data)
            case types.EmbeddedResource():
                self._embed(block.resource)
            case types.ResourceLink():
                about = [block.title or block.name, block.description or "", str(block.uri)]
                self._say(f"[Link: {' - '.join(each for each in about if each)}]")

    def add_structure(self, value: object) -> None:
        """Take the structured result, unless the texts say the same."""
        said = [_parsed(text) for text in self._texts]
        is_wrapped = isinstance(value, dict) and list(value) == ["result"]
        inner = value["result"] if isinstance(value, dict) and is_wrapped else value
        if value in said or inner in said or inner in self._texts:
            return
        pruning = _Pruning(self.redactor)
        pruned = pruning.prune(value, DEEPEST)
        self.is_cut = self.is_cut or pruning.is_cut
        self._say(json.dumps(pruned, ensure_ascii=False))

    def cut(self) -> None:
        """Note that something is missing."""
        self.is_cut = True

    def _say(self, text: str) -> None:
        most = max(0, min(self._left, self.room.characters))
        said, is_cut = bounded(text, most, self.redactor)
        self.is_cut = self.is_cut or is_cut
        self._texts.append(said)
        self._left -= len(said)
        self.room.characters -= len(said)

    def _show(self, data: str, mime_type: str) -> None:
        is_fitting = (
            mime_type in IMAGE_TYPES
            and len(self._images) < MOST_IMAGES
            and size_of(data) <= min(MOST_IMAGE_BYTES, self.room.image_bytes)
        )
        shown = _unpacked(data) if is_fitting else None
        if shown is not None and not self.redactor.holds_secret([data, shown]):
            self.room.image_bytes -= size_of(data)
            url = f"data:{mime_type};base64,{data}"
            self._images.append({"type": "image_url", "image_url": {"url": url}})
        else:
            self._leave_out("image", mime_type, data)

    def _embed(self, resource: types.TextResourceContents | types.BlobResourceContents) -> None:
        self._say(f"[Resource: {resource.uri}]")
        if isinstance(resource, types.TextResourceContents):
            self._say(resource.text)
        elif (resource.mime_type or "") in IMAGE_TYPES:
            self._show(resource.blob, resource.mime_type or "")
        else:
            self._leave_out("content", resource.mime_type or "unknown type", resource.blob)

    def _leave_out(self, what: str, mime_type: str, data: str) -> None:
        kind = shortened(self.redactor.text(mime_type), 60)
        self._say(f"[Left out: {what}, {kind}, {size_of(data):,} bytes]")


def size_of(data: str) -> int:
    """How many bytes this is in base64."""
    return len(data) * 3 // 4


def _unpacked(data: str) -> str | None:
    """The bytes that this is base64 of, a character each; None where it is none."""
    try:
        return base64.b64decode(data, validate=True).decode("latin-1")
    except (binascii.Error, ValueError):
        return None


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


@dataclass(slots=True)
class _Pruning:
    """Takes as much of a JSON value as may be shown."""

    redactor: Redactor
    is_cut: bool = False
    _left: int = MOST_NODES

    def prune(self, value: object, deep: int) -> Any:  # noqa: ANN401 - JSON of any kind
        """The value without what is too deep, too long or too much."""
        self._left -= 1
        if deep <= 0:
            self.is_cut = True
            return "…"
        if isinstance(value, Mapping):
            items = self._while_left(value.items())
            return {self._text(str(name)): self.prune(each, deep - 1) for name, each in items}
        if isinstance(value, list):
            return [self.prune(each, deep - 1) for each in self._while_left(value)]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        said, is_cut = bounded(text, MOST_CHARACTERS, self.redactor)
        self.is_cut = self.is_cut or is_cut
        return said

    def _while_left(self, each: Iterable[T]) -> Iterator[T]:
        for item in each:
            if self._left <= 0:
                self.is_cut = True
                return
            yield item


def bounded(text: str, most: int, redactor: Redactor) -> tuple[str, bool]:
    """The text without secrets, at most so long, and whether something is missing.

    What may be the beginning of a secret at a cut is cut as well.
    """
    margin = most + redactor.longest
    said = redactor.text(storable(text[:margin]))
    if len(text) > margin:
        said = said[: max(0, len(said) - redactor.longest)]
    return said[:most], len(text) > margin or len(said) > most
