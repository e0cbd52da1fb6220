"""Runs over HTTP, with LangGraph's own client and a real worker."""

from __future__ import annotations

from typing import Any, cast

from tests.support.service import RunningService

HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello there"}]}


class TestAStreamedRun:
    async def test_answers_while_it_is_made(self, service: RunningService) -> None:
        client = service.sdk("streamer")
        thread = await client.threads.create()
        parts = [
            part
            async for part in client.runs.stream(
                thread["thread_id"], "agent", input=HELLO, stream_mode=["values", "messages-tuple"]
            )
        ]
        assert parts[0].event == "metadata"
        assert parts[-1].event == "end"
        assert parts[-1].data["status"] == "success"
        text = "".join(p.data[0]["content"] for p in parts if p.event == "messages")
        assert text == "You said: Hello there"

    async def test_is_read_again_from_the_middle(self, service: RunningService) -> None:
        client = service.sdk("rereader")
        thread = await client.threads.create()
        parts = [p async for p in client.runs.stream(thread["thread_id"], "agent", input=HELLO)]
        run_id = parts[0].data["run_id"]
        rest = [
            p
            async for p in client.runs.join_stream(
                thread["thread_id"], run_id, last_event_id=parts[0].id
            )
        ]
        assert rest == parts[1:]

    async def test_gives_the_thread_a_title_and_a_state(self, service: RunningService) -> None:
        client = service.sdk("titled")
        thread = await client.threads.create()
        waited = await client.runs.wait(thread["thread_id"], "agent", input=HELLO)
        values = cast("dict[str, Any]", waited)
        assert [m["type"] for m in values["messages"]] == ["human", "ai"]
        found = cast("dict[str, Any]", await client.threads.get(thread["thread_id"]))
        assert found["title"] == "Hello there"
        assert found["values"] == values
        state = await client.threads.get_state(thread["thread_id"])
        assert state["values"] == values
        history = await client.threads.get_history(thread["thread_id"], limit=2)
        assert history[0] == state
        at = await client.threads.get_state(
            thread["thread_id"], checkpoint_id=history[1]["checkpoint"]["checkpoint_id"]
        )
        assert at == history[1]


class TestAListOfRuns:
    async def test_repeats_what_was_asked_for_only_as_far_as_it_is_not_too_much(
        self, service: RunningService
    ) -> None:
        http = service.client("repeater")
        thread = (await http.post("/threads", json={})).json()["thread_id"]
        given = {"messages": [{"role": "user", "content": "a" * 900_000} for _ in range(5)]}
        for _ in range(3):
            body = {"assistant_id": "agent", "input": given}
            await http.post(f"/threads/{thread}/runs", json=body)
        plain = (await http.get(f"/threads/{thread}/runs")).json()
        assert len(plain) == 3
        assert all("kwargs" not in run for run in plain)
        chosen = (await http.get(f"/threads/{thread}/runs?select=run_id&select=kwargs")).json()
        assert [run["run_id"] for run in chosen] == [run["run_id"] for run in plain[:2]]
        assert all(run["kwargs"]["input"] == given for run in chosen)
