"""What a person is told when a model call goes wrong, and what of the answer is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from langchain_ollama import ChatOllama

from app.models.chat import build_chat_model
from app.models.errors import ModelError
from app.models.failures import describe_model_failure
from tests.support.held_ports import held_port
from tests.support.model_server import Script, ScriptedModelServer, ToolCall
from tests.support.models import QUICK, FreeSeats, model_calls


async def failure_of(chat: ChatOllama, text: str = "hi") -> tuple[str, str]:
    """Return what had streamed, and the code of the failure."""
    streamed = ""
    try:
        async for chunk in chat.astream(text):
            streamed += chunk.text
    except Exception as error:  # noqa: BLE001 - whatever the libraries make of it
        described = describe_model_failure(error)
        assert described is not None
        return streamed, described.code
    return streamed, "none"


@asynccontextmanager
async def impatient(url: str, **timing: float) -> AsyncIterator[ChatOllama]:
    """A model that is not waited for as long as usual."""
    async with model_calls(FreeSeats(url), replace(QUICK, **timing)):
        yield build_chat_model("smollm2", context=2048, output=64)


class TestBeforeTheFirstByte:
    @pytest.mark.parametrize(
        ("status", "code"),
        [
            (400, "model_tools_unsupported"),
            (404, "model_missing"),
            (500, "model_failed"),
            (503, "model_busy"),
        ],
    )
    async def test_a_refusal_has_its_code(
        self, server: ScriptedModelServer, chat: ChatOllama, status: int, code: str
    ) -> None:
        server.answer_with(Script(status=status))
        assert await failure_of(chat) == ("", code)

    async def test_a_model_without_tools_is_named_as_such(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        server.answer_with(Script(status=400))
        with pytest.raises(ModelError, match="does not support tools"):
            await chat.ainvoke("hi")

    async def test_a_busy_server_is_asked_again(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        server.enqueue(Script(status=503), Script(status=503))
        assert (await chat.ainvoke("hi")).text == "You said: hi"

    async def test_a_server_that_only_loaded_is_asked_again(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        server.enqueue(Script(load_only=True))
        assert (await chat.ainvoke("hi")).text == "You said: hi"

    async def test_a_server_that_only_ever_loads_is_an_error(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        server.answer_with(Script(load_only=True))
        assert await failure_of(chat) == ("", "model_empty")

    async def test_a_connection_that_is_dropped_is_made_again_once(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        server.enqueue(Script(reset_at=0))
        assert (await chat.ainvoke("hi")).text == "You said: hi"

    async def test_a_tool_call_that_cannot_be_read_is_asked_for_once_more(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        server.enqueue(Script(error_at=0, error="error parsing tool call: raw='{'"))
        assert (await chat.ainvoke("hi")).text == "You said: hi"

    async def test_an_error_that_would_come_again_is_not_asked_for_again(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        server.answer_with(Script(status=400))
        await failure_of(chat)
        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        ("script", "asked"),
        [
            (Script(status=503), 5),
            (Script(load_only=True), 4),
            (Script(cut_at=0), 2),
            (Script(reset_at=0), 2),
            (Script(malformed_at=0), 2),
            (Script(error_at=0), 1),
            (Script(status=404), 6),
        ],
        ids=["busy", "only loading", "cut", "reset", "malformed", "error line", "missing"],
    )
    async def test_each_failure_is_asked_about_so_often_and_no_more_with_a_seat_each(
        self,
        server: ScriptedModelServer,
        chat: ChatOllama,
        seats: FreeSeats,
        script: Script,
        asked: int,
    ) -> None:
        server.answer_with(script)
        await failure_of(chat)
        assert len(server.requests) == asked
        assert (seats.taken, seats.busy) == (asked, 0)

    async def test_a_load_that_takes_a_while_is_waited_for(
        self, server: ScriptedModelServer
    ) -> None:
        # All at once: there is no silence in the middle of it, however slow the machine is.
        call = ToolCall(name="weather")
        server.enqueue(Script(load_seconds=0.4, tool_calls=(call,), tool_calls_in="done"))
        async with impatient(server.url, stall_seconds=0.1) as chat:
            assert [each["name"] for each in (await chat.ainvoke("hi")).tool_calls] == ["weather"]

    async def test_no_server_is_unreachable(self) -> None:
        with held_port() as port:
            async with impatient(f"http://127.0.0.1:{port}") as nobody:
                assert await failure_of(nobody) == ("", "ollama_unreachable")

    async def test_a_server_that_never_begins_times_out(self, server: ScriptedModelServer) -> None:
        server.answer_with(Script(stall_at=0))
        async with impatient(server.url, first_byte_seconds=0.05) as hasty:
            assert await failure_of(hasty) == ("", "model_timeout")
            while not server.requests:  # its time was over before the server had read it
                assert await failure_of(hasty) == ("", "model_timeout")
        await server.wait_for_disconnect()


class TestInTheMiddle:
    @pytest.mark.parametrize(
        ("script", "code"),
        [
            (Script(cut_at=1), "model_stream_cut"),
            (Script(reset_at=1), "model_stream_cut"),
            (Script(error_at=1), "model_failed"),
            (Script(malformed_at=1), "model_malformed"),
        ],
        ids=["cut", "reset", "error", "malformed"],
    )
    async def test_what_had_streamed_is_kept_and_nothing_is_asked_again(
        self, server: ScriptedModelServer, chat: ChatOllama, script: Script, code: str
    ) -> None:
        server.answer_with(script)
        assert await failure_of(chat) == ("You", code)
        assert len(server.requests) == 1

    async def test_a_cut_after_the_last_token_is_a_cut_all_the_same(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        server.answer_with(Script(text="a b", cut_at=2))
        assert await failure_of(chat) == ("a b", "model_stream_cut")

    async def test_a_silence_is_bounded_and_ends_the_generation(
        self, server: ScriptedModelServer
    ) -> None:
        server.answer_with(Script(stall_at=1))
        async with impatient(server.url, stall_seconds=0.05) as hasty:
            assert await failure_of(hasty) == ("You", "model_timeout")
        await server.wait_for_disconnect()

    async def test_a_server_that_dies_cuts_the_answer(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        server.answer_with(Script(stall_at=1))
        answer = asyncio.create_task(failure_of(chat))
        await server.wait_for_stall()
        await server.stop()
        assert await answer == ("You", "model_stream_cut")

    async def test_unreadable_tool_calls_of_the_model_are_malformed(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        words = "error parsing tool call: raw='{', err=unexpected end of JSON input"
        server.answer_with(Script(error_at=1, error=words))
        assert await failure_of(chat) == ("You", "model_malformed")

    async def test_the_servers_words_are_not_passed_on(
        self, server: ScriptedModelServer, chat: ChatOllama
    ) -> None:
        server.answer_with(Script(error_at=1, error="while reading 'my secret'"))
        with pytest.raises(ModelError) as caught:
            await chat.ainvoke("hi")
        assert "secret" not in str(caught.value)


class TestAfterwards:
    async def test_the_next_call_works(self, server: ScriptedModelServer, chat: ChatOllama) -> None:
        server.enqueue(Script(reset_at=1))
        await failure_of(chat)
        assert (await chat.ainvoke("hi")).text == "You said: hi"
