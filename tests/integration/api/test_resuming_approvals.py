"""Deciding as LangGraph's clients do: by an answer to the run, in LangChain's shape."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.integration.api.approving import Asked, asked, asking_service, note
from tests.integration.api.questioning import status_of
from tests.support.model_server import ToolCall
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService

APPROVE = {"type": "approve"}
REJECT = {"type": "reject", "message": "Not on paper"}


@pytest.fixture(scope="module")
async def service(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    async with asking_service(postgres, tmp_path_factory.mktemp("resuming")) as running:
        yield running


def edit(text: Any, **action: Any) -> dict[str, Any]:
    return {
        "type": "edit",
        "edited_action": {"name": "desk__note", "args": {"text": text}, **action},
    }


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


class TestWhatARunAsks:
    async def test_is_told_in_langchains_shape_in_its_stream_and_in_its_threads_state_and_history(
        self, service: RunningService
    ) -> None:
        waiting = await asked(service, note("a"), note("b"))
        ((interrupt_id, value),) = (await waiting.questions()).items()
        assert [each["name"] for each in value["action_requests"]] == ["desk__note"] * 2
        assert [each["args"] for each in value["action_requests"]] == [{"text": "a"}, {"text": "b"}]
        (config,) = {str(each) for each in value["review_configs"]}
        assert "'action_name': 'desk__note'" in config
        assert "'allowed_decisions': ['approve', 'edit', 'reject']" in config
        told = [frame.data for frame in waiting.log if frame.event == "values"][-1]
        assert told["__interrupt__"] == [{"id": interrupt_id, "value": value}]
        history = (await waiting.client.post(f"{waiting.thread}/history", json={})).json()
        (task,) = [task for task in history[0]["tasks"] if task["interrupts"]]
        assert [each["value"] for each in task["interrupts"]] == [value]
        await waiting.client.delete(waiting.thread)


class TestAnAnswerInLangChainsShape:
    @pytest.mark.parametrize("is_by_id", [True, False], ids=["by its id", "bare"])
    async def test_decides_each_call_as_it_says(
        self, service: RunningService, is_by_id: bool
    ) -> None:
        waiting = await asked(service, note("a"), note("b"), note("c"))
        first, second, third = await waiting.open()
        answer: dict[str, Any] = {"decisions": [APPROVE, edit("better"), REJECT]}
        resume = {first["interrupt_id"]: answer} if is_by_id else answer
        frames = await waiting.answer_and_read(resume, input={})
        assert status_of(frames) == "success"
        results = await waiting.results()
        assert '"a"' in results[first["tool_call_id"]]["content"]
        assert '"better"' in results[second["tool_call_id"]]["content"]
        assert "Not on paper" in results[third["tool_call_id"]]["content"]
        listed = await waiting.client.get("/approvals", params={"state": "decided"})
        rows = {each["approval_id"]: each for each in listed.json()}
        assert [rows[each["approval_id"]]["decision"] for each in (first, second, third)] == [
            "approve",
            "edit",
            "reject",
        ]

    async def test_beside_a_decision_that_stands_gives_the_others(
        self, service: RunningService
    ) -> None:
        waiting = await asked(service, note("a"), note("b"))
        first, second = await waiting.open()
        await waiting.decide(first, "approve")
        other = await waiting.answer({"decisions": [REJECT, APPROVE]})
        assert refusal(other) == (409, "approval_closed")
        assert other.json()["approval"]["approval_id"] == first["approval_id"]
        assert await waiting.open() == [second]
        frames = await waiting.answer_and_read({"decisions": [APPROVE, REJECT]})
        assert status_of(frames) == "success"
        assert (await waiting.results())[second["tool_call_id"]]["status"] == "error"

    async def test_sent_again_with_its_key_finds_the_run(self, service: RunningService) -> None:
        waiting = await asked(service)
        headers = {"Idempotency-Key": "one"}
        answers = [
            await waiting.answer({"decisions": [APPROVE]}, headers=headers) for _ in range(2)
        ]
        assert [each.status_code for each in answers] == [200, 200]
        assert {each.json()["run_id"] for each in answers} == {waiting.run_id}
        assert await waiting.ended() == "success"
        late = await waiting.answer({"decisions": [APPROVE]})
        assert refusal(late) == (409, "nothing_waits")

    @pytest.fixture
    async def patient(self, service: RunningService) -> AsyncIterator[Asked]:
        waiting = await asked(service, note("a"), note("b"))
        yield waiting
        await waiting.client.delete(waiting.thread)

    async def test_that_does_not_fit_is_refused_and_decides_nothing(self, patient: Asked) -> None:
        shown = await patient.open()
        wrong: list[tuple[Any, str, str]] = [
            ("yes", "invalid_decision", "decisions"),
            ({"decisions": [APPROVE]}, "invalid_decision", "2"),
            (
                {"decisions": [APPROVE, {"type": "respond"}]},
                "invalid_decision",
                "decisions[1].type",
            ),
            ({"decisions": [APPROVE, edit("x", name="desk__die")]}, "invalid_decision", "name"),
            ({"decisions": [APPROVE, edit(7)]}, "invalid_arguments", "`text`"),
            ({"decisions": [edit("x", id="1"), APPROVE]}, "invalid_decision", "edited_action"),
            ({"replies": {}}, "invalid_decision", "decisions"),
        ]
        for answer, code, where in wrong:
            for resume in (answer, {shown[0]["interrupt_id"]: answer}):
                refused = await patient.answer(resume)
                assert refusal(refused) == (422, code), answer
                assert where in refused.json()["detail"]
        unknown = await patient.answer({"0" * 32: {"decisions": [APPROVE, APPROVE]}})
        assert refusal(unknown) == (409, "nothing_waits")
        assert await patient.open() == shown
        assert (await patient.run())["state"] == "waiting"


class TestAnAnswerToOneOfTwoCallsThatAsk:
    async def test_leaves_the_other_open_and_tells_it_again(self, service: RunningService) -> None:
        both = (ToolCall(name=each, arguments={}) for each in ("desk__ask", "post__ask"))
        waiting = await asked(service, *both)
        ((_, value),) = (await waiting.questions()).items()
        ids = [each["tool_call_id"] for each in value["calls"]]
        (key,) = {each["key"] for call in value["calls"] for each in call["questions"]}
        frames = await waiting.answer_and_read({"replies": {ids[0]: {key: {"action": "decline"}}}})
        assert [each.event for each in frames] == ["values", "end"]
        assert frames[0].data["__interrupt__"][0]["value"] == value
        assert status_of(frames) == "interrupted"
        assert (await waiting.run())["state"] == "waiting"
        assert [each["tool_call_id"] for each in await waiting.open()] == ids[1:]
        resume = {"replies": {ids[1]: {key: {"action": "cancel"}}}}
        body = {"assistant_id": "agent", "command": {"resume": resume}}
        values = await waiting.client.post(f"{waiting.thread}/runs/wait", json=body)
        assert "__interrupt__" not in values.json()
        assert {*ids} == (await waiting.results()).keys()
        assert (await waiting.run())["state"] == "success"

    async def test_tells_nothing_twice_where_the_run_streams_no_values(
        self, service: RunningService
    ) -> None:
        both = (ToolCall(name=each, arguments={}) for each in ("desk__ask", "post__ask"))
        waiting = await asked(service, *both, modes=("messages-tuple",))
        ((_, value),) = (await waiting.questions()).items()
        ids = [each["tool_call_id"] for each in value["calls"]]
        (key,) = {each["key"] for call in value["calls"] for each in call["questions"]}
        frames = await waiting.answer_and_read(
            {"replies": {ids[0]: {key: {"action": "decline"}}}}, stream_mode=["messages-tuple"]
        )
        assert [each.event for each in frames] == ["end"]


class TestAnAnswerAboutACallOfWhichNobodyHeardTheEnd:
    async def test_says_what_became_of_it(self, service: RunningService) -> None:
        waiting = await asked(service, ToolCall(name="desk__die", arguments={}))
        ((_, value),) = (await waiting.questions()).items()
        assert value["type"] == "in_doubt"
        (call,) = value["calls"]
        answer = {"decision": "happened", "reason": "I saw it"}
        frames = await waiting.answer_and_read({"answers": {call["tool_call_id"]: answer}})
        assert status_of(frames) == "success"
        assert "I saw it" in (await waiting.results())[call["tool_call_id"]]["content"]
