"""Calls that wait for their person: how they are handed on, asked about, and gone on with.

A call that must wait is no result and no failure. It is handed on in the state beside its
siblings' results, put to the person with all others of its kind in one interrupt, one kind after
the other, and made once nothing is open any more. Pure but for :func:`put_to_person`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langgraph.types import interrupt

from app.agent import approving, doubting, elicitation
from app.agent.approving import CALL
from app.agent.doubting import IN_DOUBT
from app.agent.elicitation import ELICITATION
from app.agent.state import AskingCall, ToolTask
from app.tools.approval.ruling import Ask, Ruling
from app.tools.outcomes import NOBODY_KNOWS, UNKNOWN, Outcome, error_result
from app.tools.questions import Asked
from app.tools.waiting import InDoubt, NotApproved

if TYPE_CHECKING:
    from app.tools.calls import AgentTool
    from app.tools.waiting import MustWait

Tools = Mapping[str, "AgentTool"]
Decisions = Mapping[str, Mapping[str, Any]]
"""What was decided on each call, by its id."""

KINDS = (CALL, IN_DOUBT, ELICITATION)
"""In the order in which they are asked."""
MOST_ROUNDS = 5
"""How often one call may come back to the person after it was begun or approved."""
ASKED_TOO_MUCH = "The tool asked the person more than it may, and was not called again."
CHANGED_TOO_OFTEN = (
    "What this call needs was changed each time the person had approved it. It was not made."
)


def waiting_call(
    task: ToolTask, asks: dict[str, Any] | None, server: str | None, tool: str
) -> AskingCall:
    """A call as it waits."""
    return {**task, "server": server, "tool": tool, "asks": asks}


def handed_on(task: ToolTask, why: MustWait, tool: AgentTool | None) -> AskingCall | ToolMessage:
    """A call that must wait, for the person to be asked; its result where that is over."""
    asks = _asks(task, why, tool)
    rounds = task.get("rounds", 0) + 1
    if asks is None or rounds > MOST_ROUNDS:
        return _given_up(task, why, tool)
    server, name = (None, task["call"]["name"]) if tool is None else _names(tool)
    if isinstance(why, InDoubt):
        server, name = why.server, why.tool
    again: ToolTask = {**task, "rounds": rounds}
    return waiting_call(again, asks, server, name)


def put_to_person(
    calls: Sequence[AskingCall], messages: Sequence[AnyMessage], tools: Tools
) -> dict[str, Any]:
    """Interrupt the run with what is asked first; when it goes on, return what that changes."""
    kind = next((kind for kind in KINDS if any(_kind(call) == kind for call in calls)), None)
    if kind is None:
        return {"asking": list(calls)}
    asking = [call for call in calls if _kind(call) == kind]
    decisions = interrupt(_value(kind, asking, messages))["decisions"]
    return after_decisions(kind, calls, messages, decisions, tools)


def after_decisions(
    kind: str,
    calls: Sequence[AskingCall],
    messages: Sequence[AnyMessage],
    decisions: Decisions,
    tools: Tools,
) -> dict[str, Any]:
    """What the state becomes. A call on which nothing was decided goes on waiting."""
    results: list[BaseMessage] = []
    going: list[AskingCall] = []
    for call in calls:
        decision = decisions.get(id_of(call))
        if _kind(call) != kind or decision is None:
            going.append(call)
            continue
        after = _after(kind, call, decision, tools.get(call["call"]["name"]))
        if isinstance(after, ToolMessage):
            results.append(after)
        else:
            going.append(after)
    return {"messages": [*_edited(messages, going), *results], "asking": going}


def ready_tasks(calls: Sequence[AskingCall]) -> list[ToolTask]:
    """The calls that are to be made, without what was asked of them."""
    beside = ("server", "tool", "asks")
    return [
        {name: value for name, value in call.items() if name not in beside}  # type: ignore[misc]
        for call in calls
    ]


def is_open(calls: Sequence[AskingCall]) -> bool:
    """Whether the person still has to say something about any of them."""
    return any(call["asks"] is not None for call in calls)


def id_of(task: ToolTask) -> str:
    """The call's id."""
    return task["call"]["id"] or ""


def _asks(task: ToolTask, why: MustWait, tool: AgentTool | None) -> dict[str, Any] | None:
    if isinstance(why, Asked):
        return elicitation.elicited(why.questions)
    if isinstance(why, InDoubt):
        return doubting.doubted(why.known, tool)
    if isinstance(why, NotApproved) and tool is not None:
        ruling = approving.ruling_on(task["call"], tool) or _STRICTEST
        return approving.approval_wanted(task["call"], tool, ruling, why.changed)
    return None


_STRICTEST = Ruling(Ask.ALWAYS, version="")
"""Of a call that its policy lets through, but whoever makes it does not."""


def _given_up(task: ToolTask, why: MustWait, tool: AgentTool | None) -> ToolMessage:
    call = task["call"]
    if isinstance(why, Asked):
        return error_result(call, ASKED_TOO_MUCH, tool)
    if isinstance(why, InDoubt):
        return error_result(call, NOBODY_KNOWS, tool, Outcome.LOST)
    return error_result(call, UNKNOWN if tool is None else CHANGED_TOO_OFTEN, tool)


def _kind(call: AskingCall) -> str | None:
    return None if call["asks"] is None else call["asks"]["kind"]


def _names(tool: AgentTool) -> tuple[str | None, str]:
    return tool.server, tool.own_name or tool.name


def _value(
    kind: str, calls: Sequence[AskingCall], messages: Sequence[AnyMessage]
) -> dict[str, Any]:
    if kind == CALL:
        said = {each.id or "": each for each in messages if isinstance(each, AIMessage)}
        return approving.action_requests(calls, said)
    return doubting.doubts(calls) if kind == IN_DOUBT else elicitation.elicitations(calls)


def _after(
    kind: str, call: AskingCall, decision: Mapping[str, Any], tool: AgentTool | None
) -> AskingCall | ToolMessage:
    if kind == CALL:
        return approving.decided(call, decision, tool)
    if kind == IN_DOUBT:
        return doubting.resolved(call, decision, tool)
    return elicitation.replied(call, decision)


def _edited(messages: Sequence[AnyMessage], calls: Sequence[AskingCall]) -> list[AIMessage]:
    """The messages whose calls the person has changed, so that everybody sees what is made."""
    chosen = {(call["message_id"], id_of(call)): call["call"]["args"] for call in calls}
    edited = []
    for message in messages:
        if not isinstance(message, AIMessage):
            continue
        calls_now = [
            {**each, "args": chosen.get((message.id or "", each["id"] or ""), each["args"])}
            for each in message.tool_calls
        ]
        if calls_now != message.tool_calls:
            edited.append(message.model_copy(update={"tool_calls": calls_now}))
    return edited
