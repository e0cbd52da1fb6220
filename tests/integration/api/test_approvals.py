"""What waits for a person's word, over all their threads, and how they give it over the API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.agent.history import NOT_MADE
from app.tools.fingerprint import fingerprint
from tests.integration.api.approving import Asked, asked, asking_service, note
from tests.support.frames import read_run, start_run
from tests.support.model_server import ToolCall
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService

NOBODYS = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
async def service(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    async with asking_service(postgres, tmp_path_factory.mktemp("approvals")) as running:
        yield running


@pytest.fixture(scope="module")
async def patient(service: RunningService) -> Asked:
    """A run that waits, whatever is sent that decides nothing."""
    return await asked(service)


@pytest.fixture(scope="module")
async def two_threads(service: RunningService) -> httpx.AsyncClient:
    """Somebody who has decided one thing, and not another."""
    first = await asked(service)
    assert (await first.decide(await first.only(), "reject")).status_code == 200
    await first.ended()
    await asked(service, note("two"), client=first.client)
    return first.client


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


class TestWhatWaits:
    async def test_is_shown_exactly_as_it_will_be_done(self, service: RunningService) -> None:
        waiting = await asked(service)
        shown = await waiting.only()
        assert (shown["server"], shown["tool"], shown["kind"]) == ("desk", "note", "call")
        assert shown["arguments"] == {"text": "one"}
        assert shown["arguments_sha256"] == fingerprint({"text": "one"}).hex()
        assert shown["decisions"] == ["approve", "edit", "reject"]
        assert (shown["state"], shown["decision"]) == ("open", None)
        assert shown["thread_id"] == waiting.thread.rpartition("/")[2]
        assert shown["thread_title"] == "Write it down"
        assert shown["asked"]["model_said"] == "I will write."
        assert shown["asked"]["schema"]["required"] == ["text"]
        assert [shown["tool_call_id"]] == [each["id"] for each in await waiting.calls()]
        (interrupt_id,) = await waiting.questions()
        assert shown["interrupt_id"] == interrupt_id
        path = f"/approvals/{shown['approval_id']}"
        assert (await waiting.client.get(path)).json() == shown

    async def test_is_listed_and_counted_over_all_threads_the_newest_first(
        self, service: RunningService
    ) -> None:
        first = await asked(service)
        client = first.client
        second = await asked(service, note("two"), note("three"), client=client)
        listed = await client.get("/approvals", params={"limit": 2})
        assert [each["run_id"] for each in listed.json()] == [second.run_id] * 2
        assert listed.headers["x-pagination-total"] == "3"
        assert listed.headers["x-pagination-next"] == "2"
        rest = await client.get("/approvals", params={"limit": 2, "offset": 2})
        assert [each["run_id"] for each in rest.json()] == [first.run_id]
        assert "x-pagination-next" not in rest.headers
        assert (await client.get("/approvals/count")).json() == 3

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ({"state": "open"}, ["two"]),
            ({"state": "decided"}, ["one"]),
            ({"state": "all"}, ["two", "one"]),
            ({"state": "all", "kind": "call"}, ["two", "one"]),
            ({"kind": "elicitation"}, []),
            ({"server": "desk"}, ["two"]),
            ({"server": "other"}, []),
            ({"thread_id": NOBODYS}, []),
            ({"run_id": NOBODYS}, []),
        ],
        ids=str,
    )
    async def test_is_found_by_what_it_is(
        self, two_threads: httpx.AsyncClient, query: dict[str, str], found: list[str]
    ) -> None:
        listed = (await two_threads.get("/approvals", params=query)).json()
        assert [each["arguments"]["text"] for each in listed] == found
        counted = await two_threads.get("/approvals/count", params=query)
        assert counted.json() == len(found)

    @pytest.mark.parametrize(
        "query",
        [
            {"state": "closed"},
            {"kind": "other"},
            {"server": "de\0sk"},
            {"thread_id": "\0"},
            {"limit": 101},
            {"of": "me"},
        ],
        ids=repr,
    )
    async def test_is_not_asked_for_otherwise(
        self, service: RunningService, query: dict[str, Any]
    ) -> None:
        client = service.client("nobody in particular")
        for path in ("/approvals", "/approvals/count"):
            assert refusal(await client.get(path, params=query)) == (422, "invalid_input")


class TestADecision:
    async def test_to_approve_has_the_call_made_as_it_was_shown(
        self, service: RunningService
    ) -> None:
        waiting = await asked(service)
        shown = await waiting.only()
        answer = await waiting.decide(shown, "approve")
        assert answer.status_code == 200, answer.text
        decided = answer.json()
        assert (decided["state"], decided["decision"]) == ("decided", "approve")
        assert decided["decided_at"] is not None
        assert await waiting.ended() == "success"
        assert '"one"' in (await waiting.results())[shown["tool_call_id"]]["content"]
        assert (await waiting.client.get("/approvals/count")).json() == 0

    async def test_to_edit_has_it_made_with_what_the_person_wrote(
        self, service: RunningService
    ) -> None:
        waiting = await asked(service)
        shown = await waiting.only()
        answer = await waiting.decide(shown, "edit", arguments={"text": "better"})
        assert answer.json()["decided_arguments"] == {"text": "better"}
        assert answer.json()["arguments"] == {"text": "one"}
        assert await waiting.ended() == "success"
        result = (await waiting.results())[shown["tool_call_id"]]["content"]
        assert '"better"' in result
        assert '"one"' not in result
        assert [each["args"] for each in await waiting.calls()] == [{"text": "better"}]

    async def test_to_reject_has_nothing_made_and_the_model_told_why(
        self, service: RunningService
    ) -> None:
        waiting = await asked(service)
        shown = await waiting.only()
        answer = await waiting.decide(shown, "reject", reason="Not on paper")
        assert answer.json()["reason"] == "Not on paper"
        assert await waiting.ended() == "success"
        result = (await waiting.results())[shown["tool_call_id"]]
        assert result["status"] == "error"
        assert "Not on paper" in result["content"]

    async def test_lets_the_run_go_on_with_the_last_that_is_open(
        self, service: RunningService
    ) -> None:
        waiting = await asked(service, note("a"), note("b"))
        first, second = await waiting.open()
        assert (await waiting.decide(first, "reject")).status_code == 200
        assert (await waiting.run())["state"] == "waiting"
        assert await waiting.open() == [second]
        assert (await waiting.decide(second, "approve")).status_code == 200
        assert await waiting.ended() == "success"
        results = await waiting.results()
        assert results[first["tool_call_id"]]["status"] == "error"
        assert '["b"]' in results[second["tool_call_id"]]["content"]

    async def test_is_taken_once_and_whoever_comes_second_is_told_which(
        self, service: RunningService
    ) -> None:
        waiting = await asked(service)
        shown = await waiting.only()
        words = ("approve", "reject")
        answers = await asyncio.gather(*(waiting.decide(shown, word) for word in words))
        late, taken = sorted(answers, key=lambda answer: -answer.status_code)
        assert taken.status_code == 200
        assert refusal(late) == (409, "approval_closed")
        assert late.json()["approval"] == taken.json()
        assert await waiting.ended() == "success"

    async def test_sent_again_with_its_key_is_the_same(self, service: RunningService) -> None:
        waiting = await asked(service)
        shown = await waiting.only()
        headers = {"Idempotency-Key": "one"}
        path = f"/approvals/{shown['approval_id']}"
        body = {"decision": "approve", "arguments_sha256": shown["arguments_sha256"]}
        first, second = [
            await waiting.client.post(path, json=body, headers=headers) for _ in range(2)
        ]
        assert (first.status_code, second.status_code) == (200, 200)
        assert first.json() == second.json()
        other = await waiting.client.post(path, json={"decision": "reject"}, headers=headers)
        assert refusal(other) == (409, "idempotency_conflict")
        assert await waiting.ended() == "success"

    async def test_about_other_arguments_than_were_shown_is_refused(self, patient: Asked) -> None:
        shown = await patient.only()
        other = fingerprint({"text": "another"}).hex()
        for decision, fields in (
            ("approve", {}),
            ("edit", {"arguments": {"text": "x"}}),
            ("reject", {}),
        ):
            answer = await patient.decide(shown, decision, **fields, arguments_sha256=other)
            assert refusal(answer) == (409, "approval_changed")
        assert await patient.only() == shown

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ({}, "invalid_input"),
            ({"decision": "yes"}, "invalid_input"),
            ({"decision": "approve"}, "invalid_input"),
            ({"decision": "approve", "arguments_sha256": "0"}, "invalid_input"),
            ({"decision": "approve", "reason": "Why not"}, "invalid_input"),
            ({"decision": "approve", "scope": "everything"}, "invalid_input"),
            ({"decision": "approve", "scope": "thread"}, "invalid_decision"),
            ({"decision": "edit"}, "invalid_input"),
            ({"decision": "edit", "arguments": []}, "invalid_input"),
            ({"decision": "edit", "arguments": {}}, "invalid_arguments"),
            ({"decision": "edit", "arguments": {"text": ""}}, "invalid_arguments"),
            ({"decision": "edit", "arguments": {"text": "x", "by": "me"}}, "invalid_arguments"),
            ({"decision": "edit", "arguments": {"text": "x"}, "scope": "call"}, "invalid_input"),
            ({"decision": "reject", "arguments": {"text": "x"}}, "invalid_input"),
            ({"decision": "reject", "reason": "x" * 2001}, "invalid_input"),
            ({"decision": "reject", "reason": 7}, "invalid_input"),
            ({"decision": "answer", "replies": {}}, "invalid_decision"),
            ({"decision": "answer", "replies": {"k": {"action": "yes"}}}, "invalid_input"),
            ({"decision": "happened"}, "invalid_decision"),
            ({"decision": "repeat"}, "invalid_input"),
            ({"decision": "leave_out"}, "invalid_decision"),
            ({"decision": "approve", "for_thread": True}, "invalid_input"),
        ],
    )
    async def test_that_does_not_fit_is_refused_and_decides_nothing(
        self, patient: Asked, body: dict[str, Any], code: str
    ) -> None:
        shown = await patient.only()
        needs_hash = body.get("decision") in ("approve", "edit", "repeat") and len(body) > 1
        seen = {"arguments_sha256": shown["arguments_sha256"]} if needs_hash else {}
        path = f"/approvals/{shown['approval_id']}"
        answer = await patient.client.post(path, json={**seen, **body})
        assert refusal(answer) == (422, code), answer.text
        assert await patient.only() == shown
        assert (await patient.run())["state"] == "waiting"


class TestAQuestionThatIsSomebodyElses:
    async def test_is_unknown_whatever_is_sent_to_it(
        self, service: RunningService, patient: Asked
    ) -> None:
        hers = (await patient.only())["approval_id"]
        stranger = service.client("a stranger")
        for content, kind in (
            (b'{"decision": "approve"}', "application/json"),
            (b"{", "application/json"),
            (b"x" * 300_000, "text/plain"),
            (b"", "application/json"),
        ):
            headers = {"X-Request-Id": "5a3e0f0b0c", "Content-Type": kind}
            theirs, unknown = [
                await stranger.post(f"/approvals/{each}", content=content, headers=headers)
                for each in (hers, uuid4())
            ]
            assert refusal(theirs) == (404, "approval_not_found")
            assert theirs.content == unknown.content
        assert (await stranger.get(f"/approvals/{hers}")).status_code == 404
        assert (await stranger.get("/approvals", params={"run_id": patient.run_id})).json() == []
        assert (await patient.only())["approval_id"] == hers


class TestAQuestionThatIsTakenBack:
    async def test_cannot_be_decided_after_a_new_message(self, service: RunningService) -> None:
        waiting = await asked(service)
        shown = await waiting.only()
        instead = await start_run(waiting.client, shown["thread_id"], "Never mind")
        await read_run(waiting.client, instead)
        answer = await waiting.decide(shown, "approve")
        assert refusal(answer) == (409, "approval_closed")
        assert answer.json()["approval"]["state"] == "superseded"
        assert await waiting.open() == []
        (result,) = (await waiting.results()).values()
        assert result["content"] == NOT_MADE

    async def test_is_gone_with_its_thread(self, service: RunningService) -> None:
        waiting = await asked(service)
        shown = await waiting.only()
        assert (await waiting.client.delete(waiting.thread)).status_code == 204
        answer = await waiting.decide(shown, "approve")
        assert refusal(answer) == (404, "approval_not_found")
        assert (await waiting.client.get("/approvals/count")).json() == 0


class TestWhatAServerAsks:
    async def test_is_answered_in_the_same_place(self, service: RunningService) -> None:
        waiting = await asked(service, ToolCall(name="desk__ask", arguments={"message": "Who?"}))
        shown = await waiting.only()
        assert (shown["kind"], shown["decisions"]) == ("elicitation", ["answer"])
        (question,) = shown["asked"]["questions"]
        wrong = {question["key"]: {"action": "accept", "content": {"name": 7}}}
        answer = await waiting.decide(shown, "answer", replies=wrong)
        assert refusal(answer) == (422, "invalid_reply")
        right = {question["key"]: {"action": "accept", "content": {"name": "Ada"}}}
        assert (await waiting.decide(shown, "answer", replies=right)).status_code == 200
        assert await waiting.ended() == "success"
        assert '"Ada"' in (await waiting.results())[shown["tool_call_id"]]["content"]


class TestACallOfWhichNobodyHeardTheEnd:
    async def test_is_asked_about_and_left_out_as_the_person_says(
        self, service: RunningService
    ) -> None:
        waiting = await asked(service, ToolCall(name="desk__die", arguments={}))
        shown = await waiting.only()
        assert shown["kind"] == "in_doubt"
        assert shown["decisions"] == ["happened", "repeat", "leave_out"]
        assert shown["asked"]["known"]["sent"] == 1
        assert shown["late_outcome"] is None
        answer = await waiting.decide(shown, "leave_out", reason="It was a test")
        assert answer.json()["decision"] == "leave_out"
        assert await waiting.ended() == "success"
        result = (await waiting.results())[shown["tool_call_id"]]
        assert result["status"] == "error"
        assert "It was a test" in result["content"]
