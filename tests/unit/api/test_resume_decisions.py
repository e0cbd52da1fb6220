"""What a client of LangGraph's answers, taken for decisions about calls that wait."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from app.agent.elicitation import InvalidReply
from app.api.resume_decisions import decisions_for
from app.runs.approvals import Approval
from app.runs.deciding import Decision, InvalidDecision
from tenancy.errors import NothingWaits

ASKED = "a" * 32
"""The interrupt's id."""
SEEN = {"c1": b"\x01" * 32, "c2": b"\x02" * 32}
"""The hashes of the arguments that are shown."""
IDS = {"c1": UUID(int=1), "c2": UUID(int=2)}
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def approval(call_id: str, **fields: Any) -> Approval:
    given: dict[str, Any] = {
        "approval_id": IDS[call_id],
        "kind": "call",
        "thread_id": UUID(int=10),
        "run_id": UUID(int=11),
        "interrupt_id": ASKED,
        "message_id": "m1",
        "tool_call_id": call_id,
        "server": "desk",
        "tool": "note",
        "arguments": {"text": "one"},
        "arguments_sha256": SEEN[call_id],
        "asked": {},
        "decisions": ("approve", "edit", "reject"),
        "state": "open",
        "for_thread": False,
        "created_at": NOW,
        "expires_at": NOW,
    }
    absent = dict.fromkeys(set(Approval.__dataclass_fields__) - given.keys())
    return Approval(**{**absent, **given, **fields})


def shown(call_id: str, **members: Any) -> dict[str, Any]:
    return {"tool_call_id": call_id, "arguments_sha256": SEEN[call_id].hex(), **members}


CALLS = {"action_requests": [shown(each, name="desk__note", args={"text": "one"}) for each in IDS]}
QUESTIONS = {"type": "elicitation", "calls": [shown(each, questions=[]) for each in IDS]}
DOUBTS = {"type": "in_doubt", "calls": [shown(each, known={}) for each in IDS]}
APPROVE = {"type": "approve"}


def decided(
    answer: object, value: dict[str, Any] = CALLS, *rows: Approval
) -> list[tuple[int, Decision]]:
    """The decisions, each with the number of its call."""
    known = rows or (approval("c1"), approval("c2"))
    found = decisions_for({ASKED: answer}, {ASKED: value}, known)
    return [(each.approval_id.int, each) for each in found]


def edit(**action: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": "desk__note", "args": {}, **action}}


class TestDecisionsInLangChainsShape:
    def test_are_taken_in_the_order_of_what_is_asked(self) -> None:
        edited = edit(args={"text": "two"})
        (_, first), (_, second) = decided({"decisions": [edited, {"type": "reject"}]})
        assert (first.approval_id, first.decision) == (IDS["c1"], "edit")
        assert first.arguments == {"text": "two"}
        assert (second.approval_id, second.decision) == (IDS["c2"], "reject")
        assert second.reason is None

    def test_are_about_the_arguments_that_were_shown(self) -> None:
        found = decided({"decisions": [APPROVE, APPROVE]})
        assert [each.arguments_sha256 for _, each in found] == [*SEEN.values()]

    @pytest.mark.parametrize("message", ["", None])
    def test_without_a_message_give_no_reason(self, message: str | None) -> None:
        reject = {"type": "reject", "message": message}
        assert decided({"decisions": [reject, APPROVE]})[0][1].reason is None

    def test_give_their_message_as_the_reason(self) -> None:
        reject = {"type": "reject", "message": "Not now"}
        assert decided({"decisions": [reject, APPROVE]})[0][1].reason == "Not now"

    @pytest.mark.parametrize("names", [["editedAction"], ["edited_action", "editedAction"]])
    def test_may_name_an_edit_as_the_javascript_client_does(self, names: list[str]) -> None:
        action = {"name": "desk__note", "args": {"text": "two"}}
        given = {"type": "edit", **dict.fromkeys(names, action)}
        assert decided({"decisions": [given, APPROVE]})[0][1].arguments == {"text": "two"}

    @pytest.mark.parametrize(
        ("given", "where"),
        [
            ("approve", "`decisions[1].type` is one of approve, edit, reject"),
            ({}, "`decisions[1].type`"),
            ({"type": ["approve"]}, "`decisions[1].type`"),
            ({"type": "accept"}, "`decisions[1].type`"),
            ({"type": "approve", "scope": "thread"}, "`decisions[1]` has a field"),
            ({"type": "approve", "message": "Yes"}, "`decisions[1]` has a field"),
            ({"type": "reject", "message": 7}, "`decisions[1].message`"),
            ({"type": "reject", "message": "x" * 2001}, "`decisions[1].message`"),
            ({"type": "edit"}, "`decisions[1]` needs one `edited_action`"),
            ({**edit(), "editedAction": {"name": "desk__note", "args": {"a": 1}}}, "needs one"),
            (edit(name="desk__other"), "`decisions[1].edited_action.name` is another tool"),
            (edit(args=[1]), "`decisions[1].edited_action.args`"),
            (edit(id="c2"), "`decisions[1].edited_action` is"),
            ({"type": "edit", "edited_action": "x"}, "`decisions[1].edited_action` is"),
        ],
    )
    def test_say_where_they_do_not_fit(self, given: object, where: str) -> None:
        with pytest.raises(InvalidDecision, match="decisions") as refused:
            decided({"decisions": [APPROVE, given]})
        assert where in str(refused.value)

    @pytest.mark.parametrize(
        "answer",
        [
            "yes",
            [APPROVE, APPROVE],
            {},
            {"decisions": {}},
            {"decisions": []},
            {"decisions": [APPROVE]},
            {"decisions": [APPROVE] * 3},
            {"decisions": [APPROVE] * 2, "replies": {}},
        ],
    )
    def test_are_one_for_each_thing_that_is_asked(self, answer: object) -> None:
        with pytest.raises(InvalidDecision):
            decided(answer)

    def test_pass_over_a_call_that_was_decided_just_so(self) -> None:
        stands = approval("c1", state="decided", decision="approve")
        found = decided({"decisions": [APPROVE, APPROVE]}, CALLS, stands, approval("c2"))
        assert [number for number, _ in found] == [2]

    def test_pass_over_no_call_that_was_decided_otherwise(self) -> None:
        stands = approval(
            "c1", state="decided", decision="edit", decided_arguments={"text": "other"}
        )
        for given in (APPROVE, edit(args={"text": "two"})):
            found = decided({"decisions": [given, APPROVE]}, CALLS, stands, approval("c2"))
            assert [number for number, _ in found] == [1, 2]
        same = edit(args={"text": "other"})
        found = decided({"decisions": [same, APPROVE]}, CALLS, stands, approval("c2"))
        assert [number for number, _ in found] == [2]

    def test_are_for_nothing_where_all_is_decided_or_nobody_asks(self) -> None:
        stand = [approval(each, state="decided", decision="approve") for each in IDS]
        with pytest.raises(NothingWaits):
            decided({"decisions": [APPROVE, APPROVE]}, CALLS, *stand)
        with pytest.raises(NothingWaits):
            decided({"decisions": [APPROVE, APPROVE]}, CALLS, approval("c1"))


class TestReplies:
    def test_go_to_the_calls_that_they_name_and_leave_the_others_open(self) -> None:
        replies = {"k": {"action": "decline"}}
        ((number, found),) = decided({"replies": {"c2": replies}}, QUESTIONS)
        assert (number, found.decision, found.replies) == (2, "answer", replies)

    @pytest.mark.parametrize(
        "answer", ["yes", {}, {"replies": {}}, {"replies": []}, {"replies": {"c3": {}}}]
    )
    def test_name_a_call_that_asks(self, answer: object) -> None:
        with pytest.raises(InvalidReply):
            decided(answer, QUESTIONS)


class TestAnswersToDoubts:
    def test_say_what_became_of_each_call_or_what_is_to(self) -> None:
        answers = {
            "c1": {"decision": "happened", "reason": "I looked"},
            "c2": {"decision": "repeat"},
        }
        (_, first), (_, second) = decided({"answers": answers}, DOUBTS)
        assert (first.decision, first.reason) == ("happened", "I looked")
        assert (second.decision, second.reason) == ("repeat", None)
        assert second.arguments_sha256 == SEEN["c2"]

    @pytest.mark.parametrize(
        "given",
        [
            "happened",
            {},
            {"decision": "approve"},
            {"decision": ["happened"]},
            {"decision": "repeat", "reason": "again"},
            {"decision": "leave_out", "reason": 7},
            {"decision": "leave_out", "replies": {}},
        ],
    )
    def test_are_one_of_three(self, given: object) -> None:
        with pytest.raises(InvalidDecision):
            decided({"answers": {"c1": given}}, DOUBTS)
