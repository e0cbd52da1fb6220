"""What the agent's thread holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict

from langchain_core.messages import AnyMessage, ToolCall
from langgraph.channels.delta import DeltaChannel
from langgraph.channels.topic import Topic
from langgraph.graph.message import add_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

SNAPSHOT_EVERY = 50
"""Updates between full copies of the messages: 160 turns cost 4.7 MB instead of 245 MB."""


def fold_messages(
    messages: list[AnyMessage], updates: Sequence[list[AnyMessage]]
) -> list[AnyMessage]:
    """Apply updates one after the other, as ``add_messages`` does with one."""
    for update in updates:
        messages = add_messages(messages, update)  # type: ignore[assignment,arg-type]
    return messages


class ToolTask(TypedDict):
    """What a task that calls a tool is sent: no part of the conversation."""

    call: ToolCall
    message_id: str
    """Of the message that makes the call."""
    approval: NotRequired[str]
    """The id of the approval that lets the call be made."""
    doubt: NotRequired[str]
    """The id of the question that the person answered when nobody knew what had come of it."""
    notes: NotRequired[list[str]]
    """What the model should know beside the result; see ``app.agent.notes``."""
    replies: NotRequired[dict[str, Any]]
    """What the person has answered to the call's server so far, by the questions' keys."""
    rounds: NotRequired[int]
    """How often the call has stopped to wait for the person."""


class AskingCall(ToolTask):
    """A call of a turn that waits for its person, itself or beside others that do."""

    server: str | None
    tool: str
    """As the server calls it."""
    asks: dict[str, Any] | None
    """What is open: its ``kind``, and what goes with that. None: nothing, or nothing any more."""


class AgentState(TypedDict):
    """The conversation, and beside it what only the graph itself sees."""

    messages: Annotated[
        list[AnyMessage], DeltaChannel(fold_messages, snapshot_frequency=SNAPSHOT_EVERY)
    ]
    asking: NotRequired[Annotated[list[AskingCall], Topic(AskingCall)]]
    """Kept for one step: calls that ask, handed on until they are made again."""


SHOWN = ("messages",)
"""What of the state is anybody's to see: in a stream, or as a thread's values."""
