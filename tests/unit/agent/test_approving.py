"""What is shown of a call that needs its person's word, and what their word leads to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Interrupt

from app.agent.approving import (
    action_requests,
    approval_wanted,
    calls_to_approve,
    decided,
    ruling_on,
)
from app.agent.asking import handed_on, waiting_call
from app.agent.gate import needs_gate
from app.agent.state import AskingCall, ToolTask
from app.tools.approval.ruling import Ask, Ruling
from app.tools.calls import AgentTool
from app.tools.fingerprint import fingerprint
from app.tools.waiting import InDoubt, NotApproved

TEXT = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
NUMBER = {"type": "object", "properties": {"name": {"type": "integer"}}, "required": ["name"]}


class Says:
    """A policy that says one thing."""

    def __init__(self, ask: Ask, **fields: Any) -> None:
        self._ruling = Ruling(ask, "v1", **fields)

    def ruling(self, arguments: Mapping[str, Any]) -> Ruling:
        """That."""
        return self._ruling


def tool(schema: dict[str, Any] = TEXT, ask: Ask | None = Ask.ALWAYS, **fields: Any) -> AgentTool:
    """A tool of a server, with a schema of the server's."""

    async def pay(**arguments: Any) -> str:
        return f"paid {arguments}"

    made = StructuredTool(name="bank__pay", description="Pay.", args_schema=schema, coroutine=pay)
    policy = None if ask is None else Says(ask, **fields)
    return AgentTool(
        made, read_only=False, timeout_seconds=1, server="bank", own_name="pay", policy=policy
    )


def call(**arguments: Any) -> ToolCall:
    return ToolCall(name="bank__pay", args=arguments, id="c1", type="tool_call")


def waiting(made: ToolCall, of: AgentTool) -> AskingCall:
    ruling = ruling_on(made, of)
    assert ruling is not None
    asks = approval_wanted(made, of, ruling)
    return waiting_call({"call": made, "message_id": "m1"}, asks, "bank", "pay")


def decision(word: str, **fields: Any) -> dict[str, Any]:
    blank: dict[str, Any] = {"arguments": None, "reason": None, "replies": None, "notes": []}
    made = {"approval_id": uuid4(), "state": "decided", "decision": word}
    return {**made, **blank, **fields}


class TestACall:
    @pytest.mark.parametrize(
        ("of", "arguments"),
        [
            (tool(ask=None), {"name": "a"}),
            (tool(ask=Ask.NEVER), {"name": "a"}),
            (tool(), {"name": 7}),
            (tool(), {}),
            (tool(), {"name": "a\x00"}),
            (tool(), {"name": "\ud800"}),
            (tool(), {"name": "a", "more": [{"x": float("nan")}]}),
        ],
        ids=["no policy", "never", "misfit", "missing", "nul", "surrogate", "nan"],
    )
    def test_is_nothing_to_ask_about_where_it_needs_no_word_or_will_be_refused(
        self, of: AgentTool, arguments: dict[str, Any]
    ) -> None:
        assert ruling_on(call(**arguments), of) is None

    def test_of_a_tool_that_is_not_known_here_goes_through_the_gate(self) -> None:
        message = AIMessage("", tool_calls=[call(name="a")])
        assert needs_gate(message, {})
        assert needs_gate(message, {"bank__pay": tool()})
        assert not needs_gate(message, {"bank__pay": tool(ask=Ask.NEVER)})
        assert not needs_gate(AIMessage("done"), {})

    @pytest.mark.parametrize(
        ("ask", "may_open", "subject", "shown"),
        [
            (Ask.ALWAYS, False, None, False),
            (Ask.ALWAYS, True, "shop.test", True),
            (Ask.FIRST_USE, False, "shop.test", False),
            (Ask.FIRST_USE, True, "shop.test", False),
        ],
    )
    def test_says_what_its_approval_would_open(
        self, ask: Ask, may_open: bool, subject: str | None, shown: bool
    ) -> None:
        of = tool(ask=ask, subject="shop.test", may_open_thread=may_open)
        asks = waiting(call(name="a"), of)["asks"]
        assert asks is not None
        assert (asks["subject"], asks["may_open_thread"]) == (subject, shown)


class TestAnEdit:
    def test_is_made_with_the_persons_arguments(self) -> None:
        edit = decision("edit", arguments={"name": "b"}, notes=["memory"])
        after = decided(waiting(call(name="a"), tool()), edit, tool())
        assert not isinstance(after, ToolMessage)
        assert after["call"] == call(name="b")
        assert after["asks"] is None
        assert after["approval"] == str(edit["approval_id"])
        assert after["notes"] == ["memory", "edited"]

    def test_that_does_not_fit_the_tool_any_more_is_asked_about_again(self) -> None:
        asked = waiting(call(name="a"), tool())
        after = decided(asked, decision("edit", arguments={"name": "b"}), tool(NUMBER))
        assert not isinstance(after, ToolMessage)
        assert after["call"] == call(name="a")
        assert "approval" not in after
        assert after["asks"] is not None
        assert after["asks"]["changed"] == ["schema"]
        assert after["asks"]["schema_sha256"] == fingerprint(NUMBER).hex()

    def test_of_a_tool_that_is_gone_is_left_to_whoever_makes_the_call(self) -> None:
        edit = decision("edit", arguments={"name": "b"})
        after = decided(waiting(call(name="a"), tool()), edit, None)
        assert not isinstance(after, ToolMessage)
        assert after["asks"] is None

    def test_changes_nothing_of_what_was_asked(self) -> None:
        asked = waiting(call(name="a"), replace(tool(), own_name="pay"))
        decided(asked, decision("edit", arguments={"name": "b"}), tool())
        assert asked["call"] == call(name="a")


class TestACallThatHasToWaitThoughItsToolIsGone:
    def test_is_asked_about_by_the_names_that_it_was_begun_under(self) -> None:
        task = ToolTask(call=call(name="a"), message_id="m1")
        known = {"why": "lost", "sent": 1}
        asking = handed_on(task, InDoubt(known, "bank", "pay"), None)
        assert not isinstance(asking, ToolMessage)
        assert (asking["server"], asking["tool"]) == ("bank", "pay")
        assert asking["asks"] is not None
        assert asking["asks"]["known"] == known

    def test_is_over_where_it_was_not_made_yet(self) -> None:
        task = ToolTask(call=call(name="a"), message_id="m1")
        over = handed_on(task, NotApproved(("tool",)), None)
        assert isinstance(over, ToolMessage)
        assert over.status == "error"


class TestCallsThatWait:
    def test_are_those_of_requests_in_the_known_shape_whoever_asks(self) -> None:
        asked = action_requests([waiting(call(name="b"), tool())], {})
        others: list[Any] = ["Go on?", {"action_requests": 7}, {"action_requests": [{}, "c9"]}]
        interrupts = [Interrupt(value, id="i") for value in (asked, *others)]
        assert calls_to_approve(interrupts) == {"c1"}
