"""What a server may ask in the middle of a call, and what answers it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from app.agent.asking import MOST_ROUNDS, handed_on
from app.agent.elicitation import (
    MOST_QUESTION_BYTES,
    MOST_QUESTIONS,
    InvalidReply,
    check_replies,
    questions_for,
    replied,
)
from app.agent.state import ToolTask
from app.tools.calls import AgentTool
from app.tools.questions import Asked, Question, Reply

FORM = {"type": "object", "properties": {"seat": {"type": "string"}}, "required": ["seat"]}
SEAT = Question("Which seat?", FORM)
PAY = Question("Pay there", None, "https://shop.test/pay")


async def book() -> str:
    """Book."""
    return "booked"


TOOL = AgentTool.from_function(book, read_only=False, timeout_seconds=1)


def task(**fields: Any) -> ToolTask:
    call = {"name": "shop__book", "args": {}, "id": "c1", "type": "tool_call"}
    made: Any = {"call": call, "message_id": "m1", **fields}
    task: ToolTask = made
    return task


ASKED = [
    {"key": q.key, "message": q.message, "schema": q.schema, "url": q.url} for q in (SEAT, PAY)
]
ACCEPTED = {"action": "accept", "content": {"seat": "7a"}}
PAID = {PAY.key: {"action": "accept"}}


class TestACallThatStopsAtQuestions:
    def test_waits_with_them_and_with_what_was_answered_before(self) -> None:
        replies = {"k": {"action": "cancel"}}
        call = handed_on(task(replies=replies, rounds=1, approval="a"), Asked([SEAT]), TOOL)
        assert not isinstance(call, ToolMessage)
        assert (call["replies"], call["rounds"], call["approval"]) == (replies, 2, "a")
        assert call["asks"] is not None
        assert [each["key"] for each in call["asks"]["questions"]] == [SEAT.key]

    @pytest.mark.parametrize(
        ("rounds", "questions"),
        [
            (MOST_ROUNDS, [SEAT]),
            (0, []),
            (0, [SEAT] * (MOST_QUESTIONS + 1)),
            (0, [Question("x" * MOST_QUESTION_BYTES, None)]),
            (0, [Question(f"{n}" * (MOST_QUESTION_BYTES // 2), None) for n in (1, 2)]),
            (0, [Question("How many?", {"properties": {"n": {"maximum": 2**64}}})]),
        ],
        ids=[
            *("too often", "nothing", "too much", "at too great length"),
            *("at too great length together", "what no thread keeps"),
        ],
    )
    def test_is_over_where_its_server_asks_more_than_it_may(
        self, rounds: int, questions: list[Question]
    ) -> None:
        over = handed_on(task(rounds=rounds), Asked(questions), TOOL)
        assert isinstance(over, ToolMessage)
        assert over.status == "error"

    def test_tells_its_server_that_nobody_answered_once_the_time_is_over(self) -> None:
        earlier = {"k": {"action": "decline"}}
        call = handed_on(task(replies=earlier), Asked([SEAT, PAY]), TOOL)
        assert not isinstance(call, ToolMessage)
        again = replied(call, {"state": "expired", "decision": None, "replies": None})
        cancelled = {"action": "cancel"}
        assert again["replies"] == {**earlier, SEAT.key: cancelled, PAY.key: cancelled}
        assert again["asks"] is None

    def test_is_made_again_with_every_reply(self) -> None:
        again = task(replies={"a": ACCEPTED, "b": {"action": "decline"}})
        assert questions_for(again).replies == {
            "a": Reply("accept", {"seat": "7a"}),
            "b": Reply("decline"),
        }
        assert questions_for(task()).replies == {}


class TestAnAnswer:
    @pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
    def test_has_a_reply_to_each_question(self, action: str) -> None:
        reply = ACCEPTED if action == "accept" else {"action": action}
        check_replies(ASKED, {SEAT.key: reply, **PAID})

    @pytest.mark.parametrize(
        "answer",
        [
            None,
            "yes",
            {},
            PAID,
            {SEAT.key: ACCEPTED, **PAID, "k": ACCEPTED},
            {SEAT.key: "accept", **PAID},
            {SEAT.key: {}, **PAID},
            {SEAT.key: {"action": "approve"}, **PAID},
            {SEAT.key: {"action": ["accept"]}, **PAID},
            {SEAT.key: {"action": "accept"}, **PAID},
            {SEAT.key: {**ACCEPTED, "by": "me"}, **PAID},
            {SEAT.key: {**ACCEPTED, "action": "decline"}, **PAID},
            {SEAT.key: {**ACCEPTED, "content": {"seat": 7}}, **PAID},
            {SEAT.key: ACCEPTED, PAY.key: ACCEPTED},
        ],
    )
    def test_of_any_other_form_is_refused(self, answer: object) -> None:
        with pytest.raises(InvalidReply):
            check_replies(ASKED, answer)
