"""One conversation, as a file for people or for programs.

While they are written, its newest state is held in memory, of which a thread may have about 16 MB
as it is stored (``app/runs/thread_size.py``). So that is one conversation at a time in the whole
process, and people in turn; what is kept of one until it has been sent are the files' bytes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakValueDictionary

from app.export.archive import Content
from app.export.markdown import conversation_markdown
from app.runs.large_work import in_turn
from app.runs.sizes import LARGE_BYTES
from app.runs.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.export.headings import Heading
    from app.runs.history import ThreadHistory
    from tenancy.principal import Owner, UserId

Format = Literal["md", "jsonl"]
FORMATS: tuple[Format, ...] = ("md", "jsonl")


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a thread holds."""

    heading: Heading
    messages: Sequence[Any]
    others: Any
    """What the state of an operator's graph has beside messages; nothing of the built-in one's."""
    waits_for: Sequence[Any]
    """What the person is asked."""


class Conversations:
    """Makes files of conversations, one conversation at a time."""

    def __init__(self, history: ThreadHistory) -> None:
        self._history = history
        self._turn = asyncio.Lock()
        self._turns_of: WeakValueDictionary[UserId, asyncio.Lock] = WeakValueDictionary()
        """One of a person's waits for the turn: who asks for many holds up nobody for long."""

    async def files(
        self, owner: Owner, heading: Heading, forms: Sequence[Format] = FORMATS
    ) -> dict[Format, list[Content]]:
        """A conversation in some forms, each in pieces, with a row for each message.

        Raises:
            ThreadNotFound: it was deleted since it was found.
        """
        own = self._turns_of.setdefault(owner.user_id, asyncio.Lock())
        async with own, self._turn:
            conversation = await self._read(owner, heading)
            return {form: await _pieces(owner.user_id, conversation, form) for form in forms}

    async def _read(self, owner: Owner, heading: Heading) -> Conversation:
        state = await self._history.state(owner, heading.thread_id)
        values = state["values"]
        messages, others = [], values
        if isinstance(values, dict) and isinstance(values.get("messages"), list):
            messages = values["messages"]
            others = {name: value for name, value in values.items() if name != "messages"}
        waits_for = [each["value"] for each in state["interrupts"]]
        return Conversation(heading, messages, others, waits_for)


async def _pieces(user_id: UserId, conversation: Conversation, form: Format) -> list[Content]:
    parts = _markdown(conversation) if form == "md" else _lines(conversation)
    pieces = []
    while (piece := await in_turn(user_id, _some, parts)).data:
        pieces.append(piece)
    return pieces


def _markdown(conversation: Conversation) -> Iterator[Content]:
    for block in conversation_markdown(conversation):
        yield Content(block.encode())


def _lines(conversation: Conversation) -> Iterator[Content]:
    for message in conversation.messages:
        yield Content(to_json(message) + b"\n", 1)


def _some(parts: Iterator[Content]) -> Content:
    """As many of the next parts as make a piece worth sending; nothing at the end."""
    data, rows = bytearray(), 0
    for part in parts:
        data += part.data
        rows += part.rows
        if len(data) >= LARGE_BYTES:
            break
    return Content(bytes(data), rows)
