"""What the built-in graph asks its person, as rows; and what they decided, as the graph takes it.

What people decide is in rows alone: nothing that a client sends reaches the graph as an answer in
any other way. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.agent.approving import CALL
from app.agent.doubting import DECISIONS as ON_DOUBTS
from app.agent.doubting import IN_DOUBT
from app.agent.elicitation import ELICITATION
from app.agent.notes import GRAPH, MEMORY
from app.tools.texts import with_numbers_kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langgraph.types import Interrupt

Row = dict[str, Any]

_HANDED_ON = ("approval_id", "state", "decision", "arguments", "reason", "replies")
_OF_CALLS = (
    *("message_id", "tool_call_id", "server", "tool", "arguments_sha256", "subject"),
    *("policy_version", "schema_sha256", "grant_version", "decisions", "asked"),
)


def rows_of(interrupts: Iterable[Interrupt], graph_version: str) -> list[Row]:
    """One row for each call that the graph waits with, by the names of the columns."""
    return [
        {"interrupt_id": each.id, "graph_version": graph_version, **row}
        for each in interrupts
        for row in _rows(each.value)
    ]


def answers_from(rows: Iterable[Mapping[str, Any]], graph_version: str) -> dict[str, Any]:
    """What the graph goes on with, by the interrupts' ids.

    A call on which nothing was decided is not among an interrupt's, and asks again.
    """
    answers: dict[str, Any] = {}
    for row in rows:
        answer = answers.setdefault(row["interrupt_id"], {"decisions": {}})
        answer["decisions"][row["tool_call_id"]] = {
            **{name: with_numbers_kept(row[name]) for name in _HANDED_ON},
            "notes": _notes(row, graph_version),
        }
    return answers


def _notes(row: Mapping[str, Any], graph_version: str) -> list[str]:
    changed = {
        GRAPH: row["graph_version"] != graph_version,
        MEMORY: row["memory_changed"],
    }
    return [note for note, is_so in changed.items() if is_so]


def _rows(value: Mapping[str, Any]) -> Sequence[Row]:
    kind = value.get("type", CALL)
    if kind == ELICITATION:
        return [_elicitation(call) for call in value["calls"]]
    if kind == IN_DOUBT:
        return [_doubt(call) for call in value["calls"]]
    return [
        {"kind": CALL, "arguments": each["args"], **{name: each[name] for name in _OF_CALLS}}
        for each in value["action_requests"]
    ]


def _elicitation(call: Mapping[str, Any]) -> Row:
    return {
        "kind": ELICITATION,
        **_place(call),
        "asked": {"questions": call["questions"]},
        "decisions": ["answer"],
    }


def _doubt(call: Mapping[str, Any]) -> Row:
    return {
        "kind": IN_DOUBT,
        **_place(call),
        "asked": {"known": call["known"]},
        "decisions": ON_DOUBTS,
        "schema_sha256": call["schema_sha256"],
        "grant_version": call["grant_version"],
    }


def _place(call: Mapping[str, Any]) -> Row:
    names = ("message_id", "tool_call_id", "server", "tool", "arguments", "arguments_sha256")
    return {name: call[name] for name in names}
