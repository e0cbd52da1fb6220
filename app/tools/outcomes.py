"""How a call of a tool went: a message for the model, and a word for whoever shows it. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from langchain_core.messages import ToolMessage

if TYPE_CHECKING:
    from langchain_core.messages import ToolCall

    from app.tools.calls import AgentTool

UNKNOWN = "There is no tool of this name."
NOBODY_KNOWS = (
    "This call was begun, and nobody knows what came of it. It may have had an effect, so it was"
    " not made again."
)
UNREADABLE = "The tool's answer could not be read."

METADATA = "stoa"
"""Where a message says how its call went."""


class Outcome(StrEnum):
    """How a call went, for whoever shows it."""

    OK = "ok"
    ERROR = "error"
    STOPPED = "stopped"
    TIMEOUT = "timeout"
    CUT = "cut"
    """It went well, and its result was too long to be kept whole."""
    LOST = "lost"
    """Nobody knows whether it had an effect."""
    REJECTED = "rejected"
    """The person did not let it be made."""
    EXPIRED = "expired"
    """Nobody said in time whether it may be made."""


def result_message(call: ToolCall, tool: AgentTool | None, answer: object) -> ToolMessage:
    """The tool's answer under an id of its own, so that it is the same in every copy.

    What a tool leaves beside its content stays out: it need not be storable.
    """
    if not isinstance(answer, ToolMessage):
        return error_result(call, UNREADABLE, tool)
    said = answer.response_metadata.get(METADATA)
    outcome = said.get("outcome") if isinstance(said, dict) else None
    if outcome not in set(Outcome):
        outcome = Outcome.ERROR if answer.status == "error" else Outcome.OK
    return _message(call, answer.content, answer.status, Outcome(outcome), tool)


def error_result(
    call: ToolCall,
    text: str,
    tool: AgentTool | None = None,
    outcome: Outcome = Outcome.ERROR,
) -> ToolMessage:
    """The result of a call that came to nothing, in words for the model."""
    return _message(call, text, "error", outcome, tool)


def _message(
    call: ToolCall,
    content: Any,  # noqa: ANN401
    status: Literal["success", "error"],
    outcome: Outcome,
    tool: AgentTool | None,
) -> ToolMessage:
    told = {
        "server": None if tool is None else tool.server,
        "tool": call["name"] if tool is None else tool.own_name or tool.name,
        "seconds": 0.0,
        "outcome": outcome.value,
    }
    return ToolMessage(
        content,
        id=str(uuid4()),
        tool_call_id=call["id"] or "",
        name=call["name"],
        status=status,
        response_metadata={METADATA: told},
    )
