"""Whoever stops reading stops the model."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from langchain_core.messages import HumanMessage
from langchain_ollama import ChatOllama
from langgraph.graph import START, MessagesState, StateGraph

from app.models.chat import build_chat_model
from tests.support.model_server import Script, ScriptedModelServer
from tests.support.models import FreeSeats, model_calls


async def read(chat: ChatOllama) -> None:
    async for _ in chat.astream("hi"):
        pass


class TestStopping:
    @pytest.mark.parametrize("position", [0, 1], ids=["before the first token", "in the middle"])
    async def test_cancelling_the_reader_closes_the_connection_at_once(
        self, server: ScriptedModelServer, chat: ChatOllama, position: int
    ) -> None:
        server.enqueue(Script(stall_at=position))
        reading = asyncio.create_task(read(chat))
        await server.wait_for_stall()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await server.wait_for_disconnect()

    async def test_ending_the_run_as_well_does_so_too_whichever_comes_when(
        self, server: ScriptedModelServer, seats: FreeSeats
    ) -> None:
        """What ends first is about to close the connection when the other one comes."""
        for turns in range(8):
            async with model_calls(seats) as scope:
                chat = build_chat_model("smollm2", context=2048, output=64)
                server.enqueue(Script(stall_at=1))
                reading = asyncio.create_task(read(chat))
                await server.wait_for_stall(turns + 1)
                scope.close()
                for _ in range(turns):
                    await asyncio.sleep(0)
                reading.cancel()
                await asyncio.wait({reading})
                await server.wait_for_disconnect(turns + 1)

    async def test_leaving_the_stream_early_closes_it_too(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        server.enqueue(Script(stall_at=1))
        async with aclosing(chat.astream("hi")) as stream:  # type: ignore[type-var]
            assert (await anext(stream)).text == "You"
        await server.wait_for_disconnect()

    async def test_cancelling_a_graph_closes_the_connection(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        async def answer(state: MessagesState) -> dict[str, object]:
            return {"messages": [await chat.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer").compile()
        server.enqueue(Script(stall_at=1))
        run = asyncio.create_task(graph.ainvoke({"messages": [HumanMessage("hi")]}))
        await server.wait_for_stall()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await server.wait_for_disconnect()

    async def test_the_slot_is_free_for_the_next(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        server.enqueue(Script(stall_at=1))
        reading = asyncio.create_task(read(chat))
        await server.wait_for_stall()
        reading.cancel()
        assert (await chat.ainvoke("hi")).text == "You said: hi"
