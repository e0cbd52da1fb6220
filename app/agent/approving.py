"""Calls that need their person's word first: what is shown of each, and what the word leads to.

Pure. What the interrupt's value has in it is LangChain's shape for a human in the loop, with ours
beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.agent.notes import EDITED
from app.tools.approval.ruling import Ask
from app.tools.described import arguments_schema
from app.tools.fingerprint import fingerprint
from app.tools.mcp.arguments import complaint_about
from app.tools.outcomes import Outcome, error_result
from app.tools.texts import is_storable, shortened, storable

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, ToolCall, ToolMessage
    from langgraph.types import Interrupt

    from app.agent.state import AskingCall
    from app.tools.approval.ruling import Ruling
    from app.tools.calls import AgentTool

CALL = "call"
"""The kind of question."""
DECISIONS = ["approve", "edit", "reject"]
MOST_SAID = 4000
"""Characters of what the model said beside its calls that the person is shown."""

EXPIRED = "The person did not decide in time whether this call may be made. It was not made."
REJECTED = (
    "The person rejected this call, and it was not made. Do not try to do the same in another way."
)


def may_ask(call: ToolCall, tool: AgentTool) -> bool:
    """Whether its policy may want a call to have the person's word, if it can be made at all."""
    return tool.policy is not None and tool.policy.ruling(call["args"]).ask is not Ask.NEVER


def ruling_on(call: ToolCall, tool: AgentTool | None) -> Ruling | None:
    """What its policy says of a call that may need the person's word; None: it needs nobody's.

    A call whose arguments are refused has no effect that anybody would have to approve.
    """
    if tool is None or tool.policy is None:
        return None
    ruling = tool.policy.ruling(call["args"])
    if ruling.ask is Ask.NEVER or not is_storable(call["args"]) or _is_refused(call, tool):
        return None
    return ruling


def approval_wanted(
    call: ToolCall, tool: AgentTool, ruling: Ruling, changed: Sequence[str] = ()
) -> dict[str, Any]:
    """What a call asks that may not be made yet, with all that must still hold once it is made."""
    schema = arguments_schema(tool.tool)
    is_first_use = ruling.ask is Ask.FIRST_USE
    return {
        "kind": CALL,
        "changed": list(changed),
        "arguments_sha256": fingerprint(call["args"]).hex(),
        "schema": dict(schema),
        "schema_sha256": fingerprint(schema).hex(),
        "tool_description": tool.tool.description,
        "policy_version": ruling.version,
        "grant_version": tool.grant_version,
        "subject": ruling.subject if is_first_use or ruling.may_open_thread else None,
        "may_open_thread": ruling.may_open_thread and not is_first_use,
    }


def action_requests(calls: Sequence[AskingCall], said: Mapping[str, AIMessage]) -> dict[str, Any]:
    """The interrupt's value. ``said`` are the messages that make the calls, by their ids."""
    return {
        "action_requests": [_request_json(call, said.get(call["message_id"])) for call in calls],
        "review_configs": [
            {
                "action_name": call["call"]["name"],
                "allowed_decisions": DECISIONS,
                "args_schema": (call["asks"] or {})["schema"],
            }
            for call in calls
        ],
    }


def calls_to_approve(interrupts: Iterable[Interrupt]) -> set[str]:
    """The ids of the calls that interrupts ask about, of any graph: none of them was made."""
    values = [each.value for each in interrupts if isinstance(each.value, Mapping)]
    requests = [request for value in values for request in _listed(value.get("action_requests"))]
    return {str(each["tool_call_id"]) for each in requests if "tool_call_id" in each}


def decided(
    call: AskingCall, decision: Mapping[str, Any], tool: AgentTool | None
) -> AskingCall | ToolMessage:
    """The call as it may be made now, or its result where it may not.

    Arguments that the person chose and that do not fit the tool any more are asked about again.
    """
    if decision["state"] == "expired":
        return error_result(call["call"], EXPIRED, tool, Outcome.EXPIRED)
    if decision["decision"] == "reject":
        text = REJECTED
        if decision["reason"]:
            reason = json.dumps(decision["reason"], ensure_ascii=False)
            text += f" Their reason, in their own words: {reason}"
        return error_result(call["call"], text, tool, Outcome.REJECTED)
    notes = list(decision["notes"])
    made = call["call"]
    if decision["decision"] == "edit":
        made = {**made, "args": dict(decision["arguments"])}
        notes.append(EDITED)
        if tool is not None and _is_refused(made, tool):
            return {**call, "asks": {**(call["asks"] or {}), **_new_schema(tool)}}
    approval = str(decision["approval_id"])
    return {**call, "call": made, "asks": None, "approval": approval, "notes": notes}


def _listed(requests: object) -> list[Mapping[str, Any]]:
    found = requests if isinstance(requests, list) else []
    return [each for each in found if isinstance(each, Mapping)]


def _said(message: AIMessage | None) -> str:
    return "" if message is None else shortened(storable(message.text), MOST_SAID)


def _new_schema(tool: AgentTool) -> dict[str, Any]:
    schema = arguments_schema(tool.tool)
    sha256 = fingerprint(schema).hex()
    return {"changed": ["schema"], "schema": dict(schema), "schema_sha256": sha256}


def _is_refused(call: ToolCall, tool: AgentTool) -> bool:
    """Whether the tool itself would say that the arguments do not fit: a server's, by its schema.

    Others check them by a class, whose schema may say less or more.
    """
    schema = tool.tool.args_schema
    return isinstance(schema, dict) and complaint_about(call["args"], schema) is not None


def _request_json(call: AskingCall, message: AIMessage | None) -> dict[str, Any]:
    asks = call["asks"] or {}
    made = call["call"]
    of_server = "" if call["server"] is None else f" of `{call['server']}`"
    return {
        "name": made["name"],
        "args": made["args"],
        "description": f"The assistant wants to call `{call['tool']}`{of_server}.",
        "tool_call_id": made["id"] or "",
        "message_id": call["message_id"],
        "server": call["server"],
        "tool": call["tool"],
        "arguments_sha256": asks["arguments_sha256"],
        "changed": asks["changed"],
        "asked": {
            "schema": asks["schema"],
            "tool_description": asks["tool_description"],
            "model_said": _said(message),
            "changed": asks["changed"],
            "may_open_thread": asks["may_open_thread"],
        },
        "policy_version": asks["policy_version"],
        "schema_sha256": asks["schema_sha256"],
        "grant_version": asks["grant_version"],
        "subject": asks["subject"],
        "decisions": DECISIONS,
    }
