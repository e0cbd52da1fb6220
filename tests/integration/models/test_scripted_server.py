"""The scripted model server itself, driven by the real Ollama client library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import ollama
import pytest

from tests.support.model_server import Script, ScriptedModelServer, ToolCall


def ask(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


async def said(client: ollama.AsyncClient, text: str = "hi", **options: object) -> list[str]:
    stream = await client.chat("smollm2", ask(text), stream=True, options=options)
    return [part.message.content or "" async for part in stream]


@pytest.fixture
async def client(server: ScriptedModelServer) -> AsyncIterator[ollama.AsyncClient]:
    connected = ollama.AsyncClient()
    # Our own transports, which every client of this process may have, would take a seat.
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=20) as bare:
        connected._client = bare
        yield connected


class TestAnswering:
    async def test_it_echoes_the_last_message_unless_told_otherwise(
        self, client: ollama.AsyncClient
    ) -> None:
        assert "".join(await said(client, "good day")) == "You said: good day"

    async def test_queued_scripts_come_first_and_in_order(
        self, server: ScriptedModelServer, client: ollama.AsyncClient
    ) -> None:
        server.enqueue(Script(text="one"), Script(text="two"))
        assert [await said(client) for _ in range(2)] == [["one", ""], ["two", ""]]

    async def test_num_predict_cuts_the_answer_to_length(self, client: ollama.AsyncClient) -> None:
        stream = await client.chat("smollm2", ask("a b c"), stream=True, options={"num_predict": 2})
        last = [part async for part in stream][-1]
        assert (last.done_reason, last.eval_count) == ("length", 2)

    async def test_without_stream_it_is_one_object(self, client: ollama.AsyncClient) -> None:
        answer = await client.chat("smollm2", ask("x"))
        assert (answer.message.content, answer.done) == ("You said: x", True)

    @pytest.mark.parametrize("place", ["chunk", "done"])
    async def test_tool_calls_come_where_the_script_puts_them(
        self, server: ScriptedModelServer, client: ollama.AsyncClient, place: str
    ) -> None:
        call = ToolCall(name="weather", arguments={"city": "Tokyo"})
        server.enqueue(Script.model_validate({"tool_calls": (call,), "tool_calls_in": place}))
        stream = await client.chat("smollm2", ask("?"), stream=True)
        parts = [part async for part in stream]
        carriers = [part for part in parts if part.message.tool_calls]
        assert [part.done for part in carriers] == [place == "done"]

    async def test_embeddings_depend_on_the_text(self, client: ollama.AsyncClient) -> None:
        first, second = (await client.embed("smollm2", ["a", "b"])).embeddings
        assert first != second

    async def test_generate_answers_a_prompt(self, client: ollama.AsyncClient) -> None:
        assert (await client.generate("smollm2", "x")).response == "You said: x"


class TestFailing:
    async def test_an_error_in_mid_stream_keeps_the_status(
        self, server: ScriptedModelServer, client: ollama.AsyncClient
    ) -> None:
        server.enqueue(Script(error_at=1))
        with pytest.raises(ollama.ResponseError, match="unexpectedly stopped"):
            await said(client)

    @pytest.mark.parametrize("status", [400, 404, 503])
    async def test_a_refusal_comes_before_the_first_byte(
        self, server: ScriptedModelServer, client: ollama.AsyncClient, status: int
    ) -> None:
        server.enqueue(Script(status=status))
        with pytest.raises(ollama.ResponseError) as caught:
            await said(client)
        assert caught.value.status_code == status

    async def test_an_unknown_model_is_refused_in_ollamas_words(
        self, client: ollama.AsyncClient
    ) -> None:
        with pytest.raises(ollama.ResponseError, match="model 'x' not found"):
            await client.chat("x", ask("hi"))

    async def test_a_reset_drops_the_connection(
        self, server: ScriptedModelServer, client: ollama.AsyncClient
    ) -> None:
        server.enqueue(Script(reset_at=1))
        with pytest.raises(httpx.RemoteProtocolError):
            await said(client)

    async def test_a_cut_ends_the_body_in_good_order_without_done(
        self, server: ScriptedModelServer, client: ollama.AsyncClient
    ) -> None:
        server.enqueue(Script(cut_at=1))
        assert await said(client) == ["You"]


class TestSharing:
    async def test_a_stalled_call_holds_its_slot_until_it_is_released(
        self, server: ScriptedModelServer, client: ollama.AsyncClient
    ) -> None:
        server.enqueue(Script(stall_at=1, text="a b"))
        talking = asyncio.create_task(said(client))
        stalled = await server.wait_for_stall()
        assert (server.running, stalled.tokens_sent) == (1, 1)
        server.release(stalled)
        assert await talking == ["a", " b", ""]
        await server.wait_for_finish()
        assert server.running == 0

    async def test_it_notices_a_client_that_goes_away(
        self, server: ScriptedModelServer, client: ollama.AsyncClient
    ) -> None:
        server.enqueue(Script(stall_at=0))
        talking = asyncio.create_task(said(client))
        await server.wait_for_stall()
        talking.cancel()
        gone = await server.wait_for_disconnect()
        assert gone.finished_at is None
        assert "".join(await said(client)) == "You said: hi"

    async def test_another_context_length_loads_again(
        self, server: ScriptedModelServer, client: ollama.AsyncClient
    ) -> None:
        await said(client, num_ctx=1024)
        await said(client, num_ctx=1024)
        await said(client, num_ctx=2048)
        assert server.loads == 2
