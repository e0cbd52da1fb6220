"""One conversation, whole, and as a file.

A conversation is held in memory while it is written: its newest state, of which a thread may have
no more than about 16 MB as it is stored (``app/runs/thread_size.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any, Literal

import sqlalchemy as sa

from app.export.archive import Content
from app.export.markdown import conversation_markdown
from app.runs.large_work import in_turn
from app.runs.sizes import LARGE_BYTES
from app.runs.wire import to_json
from tenancy.errors import ThreadNotFound
from tenancy.tables import threads

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence
    from datetime import datetime
    from uuid import UUID

    from app.runs.history import ThreadHistory
    from tenancy.database.tenant import TenantRead
    from tenancy.principal import Owner, UserId

Format = Literal["md", "jsonl"]
FORMATS: tuple[Format, ...] = ("md", "jsonl")


@dataclass(frozen=True, slots=True)
class Heading:
    """Which conversation it is. Times in UTC."""

    thread_id: UUID
    title: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a thread holds."""

    heading: Heading
    messages: Sequence[Any]
    others: Any
    """What the state of an operator's graph has beside messages; nothing of the built-in one's."""
    waits_for: Sequence[Any]
    """What the person is asked."""


_COLUMNS = (threads.c.thread_id, threads.c.title, threads.c.created_at, threads.c.updated_at)
_HEADINGS = sa.select(*_COLUMNS).where(threads.c.deleted_at.is_(None))


async def find_heading(tx: TenantRead, thread_id: UUID) -> Heading:
    """A thread's heading.

    Raises:
        ThreadNotFound: the user has no such thread.
    """
    row = await tx.first(_HEADINGS.where(threads.c.thread_id == thread_id))
    if row is None:
        raise ThreadNotFound
    return _heading(row)


async def next_headings(tx: TenantRead, after: Heading | None, most: int) -> list[Heading]:
    """Headings, the thread that was made first first; only those after one that is given."""
    query = _HEADINGS
    if after is not None:
        at, thread_id = threads.c.created_at, threads.c.thread_id
        query = query.where(at >= after.created_at).where(
            (at > after.created_at) | (thread_id < after.thread_id)
        )
    # An index has the newest first, and of those of one moment the lowest id; from its end on.
    query = query.order_by(threads.c.created_at, threads.c.thread_id.desc()).limit(most)
    return [_heading(row) for row in await tx.all(query)]


def _heading(row: sa.Row[Any]) -> Heading:
    at, changed = row.created_at.astimezone(UTC), row.updated_at.astimezone(UTC)
    return Heading(row.thread_id, row.title, at, changed)


async def read_conversation(history: ThreadHistory, owner: Owner, heading: Heading) -> Conversation:
    """A thread with its newest state.

    Raises:
        ThreadNotFound: it was deleted since it was found.
    """
    state = await history.state(owner, heading.thread_id)
    values = state["values"]
    messages, others = [], values
    if isinstance(values, dict) and isinstance(values.get("messages"), list):
        messages = values["messages"]
        others = {name: value for name, value in values.items() if name != "messages"}
    waits_for = [each["value"] for each in state["interrupts"]]
    return Conversation(heading, messages, others, waits_for)


async def conversation_file(
    user_id: UserId, conversation: Conversation, form: Format
) -> AsyncGenerator[Content, None]:
    """A conversation as a file, made piece by piece, with a row for each message."""
    parts = _markdown(conversation) if form == "md" else _lines(conversation)
    while True:
        part = await in_turn(user_id, _some, parts)
        if not part.data:
            return
        yield part


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
