"""What was said last in another conversation of a run's person, as text."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID
from weakref import WeakValueDictionary

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

if TYPE_CHECKING:
    from app.runs.history import ThreadHistory
    from tenancy.principal import Owner, UserId

MOST_CHARACTERS = 64 * 1024


class Conversations:
    """Reads them one at a time: each is whole in memory while it is read.

    Of one person's, one stands in that line, however many of theirs are pointed at.
    """

    def __init__(self, history: ThreadHistory) -> None:
        self._history = history
        self._one_at_a_time = asyncio.Semaphore(1)
        self._own: WeakValueDictionary[UserId, asyncio.Lock] = WeakValueDictionary()

    async def newest(self, owner: Owner, thread_id: str) -> str:
        """The newest words of the person and of the assistant, the last of them last.

        What tools gave is not among them.

        Raises:
            ThreadNotFound: the owner has no such thread.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        own = self._own.setdefault(owner.user_id, asyncio.Lock())
        async with own, self._one_at_a_time:
            state = await self._history.state(owner, UUID(thread_id))
            return newest_words(state["values"])


def newest_words(values: Any) -> str:  # noqa: ANN401 - of any graph
    """What was said last in a thread of these values. Pure."""
    messages = values.get("messages") if isinstance(values, Mapping) else None
    said: list[str] = []
    left = MOST_CHARACTERS
    for message in reversed(messages if isinstance(messages, Sequence) else ()):
        if (line := _said(message)) is not None:
            said.append(line[-left:])
            left -= len(line) + 1
            if left <= 0:
                break
    return "\n".join(reversed(said))


def _said(message: object) -> str | None:
    if not isinstance(message, BaseMessage) or not message.text.strip():
        return None
    match message:
        case HumanMessage():
            return f"person: {message.text}"
        case AIMessage():
            return f"assistant: {message.text}"
        case _:
            return None
