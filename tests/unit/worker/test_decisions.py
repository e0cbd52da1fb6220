"""What the built-in graph asks, as rows; and what was decided, as the graph takes it."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Interrupt

from app.worker.decisions import answers_from, rows_of

OF_CALL: dict[str, Any] = {
    "tool_call_id": "c1",
    "message_id": "m1",
    "server": "bank",
    "tool": "pay",
    "arguments_sha256": "ab",
}
REQUEST: dict[str, Any] = {
    **OF_CALL,
    "name": "bank__pay",
    "args": {"name": "b"},
    "description": "…",
    "changed": [],
    "asked": {"schema": {}, "may_open_thread": False},
    "policy_version": "p",
    "schema_sha256": "cd",
    "grant_version": 3,
    "subject": None,
    "decisions": ["approve", "edit", "reject"],
}
QUESTIONS = [{"key": "k", "message": "Which?", "schema": None, "url": None}]


def decided(**fields: Any) -> dict[str, Any]:
    row = {
        "interrupt_id": "i1",
        "tool_call_id": "c1",
        "kind": "call",
        "approval_id": "a1",
        "state": "decided",
        "decision": "approve",
        "arguments": None,
        "reason": None,
        "replies": None,
        "graph_version": "g1",
        "asked_at": "2026-01-01T00:00:00Z",
        "memory_changed": False,
    }
    return {**row, **fields}


class TestWhatIsAsked:
    def test_is_a_row_for_each_call_of_each_interrupt(self) -> None:
        other = {**REQUEST, "tool_call_id": "c2"}
        value = {"action_requests": [REQUEST, other], "review_configs": []}
        rows = rows_of([Interrupt(value, id="i1"), Interrupt(value, id="i2")], "g1")
        places = [(row["interrupt_id"], row["tool_call_id"]) for row in rows]
        assert places == [("i1", "c1"), ("i1", "c2"), ("i2", "c1"), ("i2", "c2")]

    def test_has_of_a_call_all_that_must_still_hold_when_it_is_made(self) -> None:
        value = {"action_requests": [REQUEST], "review_configs": []}
        (row,) = rows_of([Interrupt(value, id="i1")], "g1")
        beside = {"interrupt_id": "i1", "graph_version": "g1", "kind": "call"}
        shown = {
            name: REQUEST[name]
            for name in REQUEST
            if name not in ("name", "args", "description", "changed")
        }
        assert row == {**beside, **shown, "arguments": {"name": "b"}}

    def test_has_of_an_elicitation_its_questions(self) -> None:
        call = {**OF_CALL, "arguments": {}, "questions": QUESTIONS}
        value = {"type": "elicitation", "calls": [call]}
        (row,) = rows_of([Interrupt(value, id="i1")], "g1")
        assert (row["kind"], row["decisions"]) == ("elicitation", ["answer"])
        assert row["asked"] == {"questions": QUESTIONS}

    def test_has_of_a_doubt_what_is_known(self) -> None:
        known = {"why": "lost"}
        call = {
            **OF_CALL,
            "name": "bank__pay",
            "arguments": {},
            "known": known,
            "schema_sha256": "cd",
            "grant_version": 3,
        }
        (row,) = rows_of([Interrupt({"type": "in_doubt", "calls": [call]}, id="i1")], "g1")
        assert (row["kind"], row["asked"]) == ("in_doubt", {"known": known})
        assert row["decisions"] == ["happened", "repeat", "leave_out"]
        assert (row["schema_sha256"], row["grant_version"]) == ("cd", 3)


class TestWhatWasDecided:
    def test_is_handed_on_by_interrupt_and_call(self) -> None:
        rows = [
            decided(),
            decided(tool_call_id="c2", approval_id="a2", decision="reject", reason="no"),
            decided(interrupt_id="i2", approval_id="a3", state="expired", decision=None),
        ]
        answers = answers_from(rows, "g1")
        assert set(answers) == {"i1", "i2"}
        assert set(answers["i1"]["decisions"]) == {"c1", "c2"}
        assert answers["i1"]["decisions"]["c2"] == {
            "approval_id": "a2",
            "state": "decided",
            "decision": "reject",
            "arguments": None,
            "reason": "no",
            "replies": None,
            "notes": [],
        }
        assert answers["i2"]["decisions"]["c1"]["state"] == "expired"

    def test_has_numbers_as_a_thread_keeps_them(self) -> None:
        """The database writes 1e22 out."""
        replies = {"k": {"action": "accept", "content": {"n": 10**22}}}
        (answer,) = answers_from([decided(replies=replies)], "g1").values()
        given = answer["decisions"]["c1"]["replies"]["k"]["content"]["n"]
        assert repr(given) == "1e+22"

    @pytest.mark.parametrize(
        ("version", "memory_changed", "notes"),
        [
            ("g1", False, []),
            ("g2", False, ["graph"]),
            ("g1", True, ["memory"]),
            ("g2", True, ["graph", "memory"]),
        ],
    )
    def test_says_what_has_changed_since(
        self, version: str, memory_changed: bool, notes: list[str]
    ) -> None:
        answers = answers_from([decided(memory_changed=memory_changed)], version)
        assert answers["i1"]["decisions"]["c1"]["notes"] == notes
