"""Questions to a person as clients see them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.runs.approvals import Approval


def approval_json(approval: Approval) -> dict[str, Any]:
    """A question, and what became of it."""
    return {
        "approval_id": str(approval.approval_id),
        "kind": approval.kind,
        "thread_id": str(approval.thread_id),
        "thread_title": approval.thread_title,
        "run_id": str(approval.run_id),
        "interrupt_id": approval.interrupt_id,
        "message_id": approval.message_id,
        "tool_call_id": approval.tool_call_id,
        "server": approval.server,
        "tool": approval.tool,
        "arguments": approval.arguments,
        "arguments_sha256": approval.arguments_sha256.hex(),
        "asked": approval.asked,
        "decisions": list(approval.decisions),
        "subject": approval.subject,
        "may_open_thread": approval.may_open_thread,
        "state": approval.state,
        "decision": approval.decision,
        "decided_arguments": approval.decided_arguments,
        "for_thread": approval.for_thread,
        "reason": approval.reason,
        "late_outcome": _late_outcome(approval),
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "decided_at": approval.decided_at,
    }


def _late_outcome(approval: Approval) -> dict[str, Any] | None:
    if approval.late_at is None:
        return None
    result = approval.late_result or {}
    return {
        "result": result.get("content"),
        "outcome": result.get("outcome"),
        "at": approval.late_at,
    }
