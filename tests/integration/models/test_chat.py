"""The chat model against a server that answers."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage
from langchain_ollama import ChatOllama

from tests.support.model_server import Script, ScriptedModelServer, ToolCall


class TestAsking:
    async def test_the_answer_streams_token_by_token(self, chat: ChatOllama) -> None:
        chunks = [chunk.text async for chunk in chat.astream("good day")]
        assert [text for text in chunks if text] == ["You", " said:", " good", " day"]

    async def test_context_and_output_are_pinned_in_every_request(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        await chat.ainvoke("one")
        await chat.ainvoke("two", stop=["x"])
        sent = [(each.options["num_ctx"], each.options["num_predict"]) for each in server.requests]
        assert sent == [(2048, 64)] * 2
        assert server.loads == 1

    async def test_the_counts_of_the_server_become_usage(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        server.enqueue(Script(text="a b", prompt_tokens=11, cached_tokens=10))
        usage = (await chat.ainvoke("hi")).usage_metadata
        assert usage is not None
        assert (usage["input_tokens"], usage["output_tokens"]) == (11, 2)

    @pytest.mark.parametrize("place", ["chunk", "done"])
    async def test_tool_calls_arrive_wherever_the_server_puts_them(
        self, server: ScriptedModelServer, chat: ChatOllama, place: str
    ) -> None:
        call = ToolCall(name="weather", arguments={"city": "Tokyo"})
        server.enqueue(Script.model_validate({"tool_calls": (call,), "tool_calls_in": place}))
        answer = await chat.ainvoke([HumanMessage("how is it?")])
        assert [(each["name"], each["args"]) for each in answer.tool_calls] == [
            ("weather", {"city": "Tokyo"})
        ]

    async def test_the_environments_proxy_and_host_are_ignored(
        self, chat: ChatOllama, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "OLLAMA_HOST"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        assert (await chat.ainvoke("hi")).text == "You said: hi"

    async def test_a_synchronous_call_on_the_event_loop_is_refused(self, chat: ChatOllama) -> None:
        with pytest.raises(RuntimeError, match="ainvoke"):
            chat.invoke("hi")
