"""Calls of which nobody knows what came: what the person is asked, and what follows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.tools.described import arguments_schema
from app.tools.fingerprint import fingerprint
from app.tools.outcomes import NOBODY_KNOWS, Outcome, error_result

if TYPE_CHECKING:
    from langchain_core.messages import ToolMessage

    from app.agent.state import AskingCall
    from app.tools.calls import AgentTool

IN_DOUBT = "in_doubt"
"""The kind of question, and the ``type`` of the interrupt's value."""
DECISIONS = ["happened", "repeat", "leave_out"]


def doubted(known: Mapping[str, Any], tool: AgentTool | None) -> dict[str, Any]:
    """What a call asks of which this is known."""
    schema = None if tool is None else arguments_schema(tool.tool)
    return {
        "kind": IN_DOUBT,
        "known": dict(known),
        "schema_sha256": None if schema is None else fingerprint(schema).hex(),
        "grant_version": None if tool is None else tool.grant_version,
    }


def doubts(calls: Sequence[AskingCall]) -> dict[str, Any]:
    """The interrupt's value."""
    return {"type": IN_DOUBT, "calls": [_call_json(call) for call in calls]}


def resolved(
    call: AskingCall, decision: Mapping[str, Any], tool: AgentTool | None
) -> AskingCall | ToolMessage:
    """The call, for the ledger to do with as the person said; a result where nobody said anything.

    An outcome that came after all is the ledger's to tell as well.
    """
    if decision["state"] == "expired":
        return error_result(call["call"], NOBODY_KNOWS, tool, Outcome.LOST)
    return {**call, "asks": None, "doubt": str(decision["approval_id"])}


def _call_json(call: AskingCall) -> dict[str, Any]:
    asks = call["asks"] or {}
    made = call["call"]
    return {
        "server": call["server"],
        "tool": call["tool"],
        "name": made["name"],
        "tool_call_id": made["id"] or "",
        "message_id": call["message_id"],
        "arguments": made["args"],
        "arguments_sha256": fingerprint(made["args"]).hex(),
        "known": asks["known"],
        "schema_sha256": asks["schema_sha256"],
        "grant_version": asks["grant_version"],
    }
