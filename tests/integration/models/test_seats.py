"""A call's seat comes back once, with what was used, however the call ends."""

from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing
from dataclasses import replace

import httpx
import ollama
import pytest
from langchain_ollama import ChatOllama

from app.models.answer import MOST_UNREAD
from app.models.errors import ModelCallOutsideRun, ModelError, ModelStreamCut, ModelTimeout
from app.models.scope import RunScope
from app.models.usage import Usage
from tests.support.model_server import Script, ScriptedModelServer
from tests.support.models import QUICK, FreeSeats, model_calls

ASK = [{"role": "user", "content": "hi"}]
ROUGH_PROMPT = 11
"""Of the message above, with its JSON: 44 characters, four to a token."""


@pytest.fixture
def client(scope: RunScope, chat: ChatOllama) -> ollama.AsyncClient:
    """A bare client, as a graph of somebody else's has it."""
    return ollama.AsyncClient()


class TestAnAnswer:
    @pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
    async def test_that_ends_is_charged_by_the_servers_own_counts(
        self,
        server: ScriptedModelServer,
        seats: FreeSeats,
        client: ollama.AsyncClient,
        stream: bool,
    ) -> None:
        server.enqueue(Script(text="a b c", prompt_tokens=11))
        if stream:
            async for _ in await client.chat("smollm2", ASK, stream=True):
                pass
        else:
            assert (await client.chat("smollm2", ASK)).message.content == "a b c"
        assert await seats.all_back() == [Usage(11, 3)]

    async def test_that_is_cut_off_by_its_reader_is_charged_as_far_as_it_came(
        self, server: ScriptedModelServer, seats: FreeSeats, client: ollama.AsyncClient
    ) -> None:
        server.enqueue(Script(text="a b c", stall_at=2))
        heard = asyncio.Event()
        asking = asyncio.create_task(_listen(client, until=" b", heard=heard))
        await heard.wait()
        asking.cancel()
        await asyncio.wait({asking})
        assert asking.cancelled()
        await server.wait_for_disconnect()
        assert await seats.all_back() == [Usage(ROUGH_PROMPT, 2)]

    async def test_without_a_stream_is_charged_too_as_far_as_it_came(
        self, server: ScriptedModelServer
    ) -> None:
        # At the first of them: on a slow machine there might be as long a silence before others.
        server.enqueue(Script(text="a b c", stall_at=1))
        seats = FreeSeats(server.url)
        async with model_calls(seats, replace(QUICK, stall_seconds=0.05)):
            with pytest.raises(ModelTimeout):
                await ollama.AsyncClient().chat("smollm2", ASK)
        assert await seats.all_back() == [Usage(ROUGH_PROMPT, 1)]

    async def test_without_a_stream_ends_with_its_reader(
        self, server: ScriptedModelServer, seats: FreeSeats, client: ollama.AsyncClient
    ) -> None:
        server.enqueue(Script(stall_at=1))
        asking = asyncio.create_task(client.chat("smollm2", ASK))
        await server.wait_for_stall()
        asking.cancel()
        await server.wait_for_disconnect()
        (usage,) = await seats.all_back()
        assert usage.prompt_tokens == ROUGH_PROMPT

    async def test_that_is_cut_off_before_its_first_word_is_charged_for_the_reading(
        self, server: ScriptedModelServer, seats: FreeSeats, client: ollama.AsyncClient
    ) -> None:
        server.enqueue(Script(stall_at=0))
        asking = asyncio.create_task(_listen(client))
        await server.wait_for_stall()
        asking.cancel()
        await server.wait_for_disconnect()
        assert await seats.all_back() == [Usage(ROUGH_PROMPT, 0)]

    @pytest.mark.parametrize(
        "script",
        [Script(text="a b", cut_at=1), Script(text="a b", error_at=1), Script(reset_at=1)],
        ids=["cut", "error line", "reset"],
    )
    async def test_that_the_server_breaks_off_is_charged_as_far_as_it_came(
        self,
        server: ScriptedModelServer,
        seats: FreeSeats,
        client: ollama.AsyncClient,
        script: Script,
    ) -> None:
        server.enqueue(script)
        with pytest.raises(ModelError):
            await _listen(client)
        assert await seats.all_back() == [Usage(ROUGH_PROMPT, 1)]
        assert seats.settled[0][1] == "failed"

    async def test_that_never_came_costs_nothing(
        self, server: ScriptedModelServer, seats: FreeSeats, client: ollama.AsyncClient
    ) -> None:
        server.enqueue(Script(status=500))
        with pytest.raises(ModelError):
            await _listen(client)
        assert await seats.all_back() == [Usage()]

    async def test_without_a_stream_is_asked_for_again_when_it_breaks_off(
        self, server: ScriptedModelServer, seats: FreeSeats, client: ollama.AsyncClient
    ) -> None:
        server.enqueue(Script(text="a b", cut_at=1), Script(text="c", prompt_tokens=5))
        assert (await client.chat("smollm2", ASK)).message.content == "c"
        assert await seats.all_back() == [Usage(ROUGH_PROMPT, 1), Usage(5, 1)]


class TestAReader:
    async def test_who_leaves_early_ends_the_call(
        self, server: ScriptedModelServer, seats: FreeSeats, chat: ChatOllama
    ) -> None:
        server.enqueue(Script(stall_at=1))
        async with aclosing(chat.astream("hi")) as parts:  # type: ignore[type-var]
            await anext(parts)
        await server.wait_for_disconnect()
        assert [usage.output_tokens for usage in await seats.all_back()] == [1]

    async def test_who_forgets_the_generator_ends_the_call(
        self, server: ScriptedModelServer, seats: FreeSeats, client: ollama.AsyncClient
    ) -> None:
        server.enqueue(Script(stall_at=1))
        parts = await client.chat("smollm2", ASK, stream=True)
        await anext(aiter(parts))
        del parts
        gc.collect()
        await server.wait_for_disconnect()
        assert len(await seats.all_back()) == 1

    async def test_who_never_reads_holds_no_seat_once_the_model_has_spoken(
        self, server: ScriptedModelServer, seats: FreeSeats, client: ollama.AsyncClient
    ) -> None:
        bare: httpx.AsyncClient = client._client
        body = {"model": "smollm2", "messages": ASK}
        request = bare.build_request("POST", "/api/chat", json=body)
        unread = await bare.send(request, stream=True)
        assert await seats.all_back() == [Usage(4, 3)]
        assert b"said" in await unread.aread()

    async def test_who_is_slow_holds_up_only_what_is_far_too_much(
        self, server: ScriptedModelServer, seats: FreeSeats, client: ollama.AsyncClient
    ) -> None:
        word = "x" * (MOST_UNREAD // 8)
        server.enqueue(Script(tokens=tuple([word] * 20)))
        parts = aiter(await client.chat("smollm2", ASK, stream=True))
        said = (await anext(parts)).message.content or ""
        await server.wait_for_start()
        assert seats.busy == 1
        async for part in parts:
            said += part.message.content or ""
        assert said == word * 20
        assert len(await seats.all_back()) == 1


class TestARunThatEnds:
    @pytest.mark.parametrize("position", [0, 1], ids=["before the first word", "in the middle"])
    async def test_takes_the_calls_of_its_stray_tasks_with_it(
        self,
        server: ScriptedModelServer,
        seats: FreeSeats,
        scope: RunScope,
        client: ollama.AsyncClient,
        position: int,
    ) -> None:
        server.enqueue(Script(stall_at=position))
        stray = asyncio.create_task(_listen(client))
        await server.wait_for_stall()
        scope.close()
        with pytest.raises(ModelCallOutsideRun):
            await stray
        await server.wait_for_disconnect()
        assert len(await seats.all_back()) == 1

    async def test_begins_no_more(
        self, seats: FreeSeats, scope: RunScope, client: ollama.AsyncClient
    ) -> None:
        scope.close()
        with pytest.raises(ModelCallOutsideRun, match="while a run is being executed"):
            await _listen(client)
        assert seats.taken == 0

    async def test_leaves_what_was_read_whole_alone(
        self, scope: RunScope, client: ollama.AsyncClient, seats: FreeSeats
    ) -> None:
        body = {"model": "smollm2", "messages": ASK}
        request = client._client.build_request("POST", "/api/chat", json=body)
        unread = await client._client.send(request, stream=True)
        await seats.all_back()
        await scope.ended(5)
        scope.close()
        assert b'"done":true' in await unread.aread()


class TestEmbeddings:
    async def test_take_a_seat_and_are_charged(
        self, server: ScriptedModelServer, seats: FreeSeats, client: ollama.AsyncClient
    ) -> None:
        answer = await client.embed("smollm2", ["one two", "three"])
        assert len(answer.embeddings) == 2
        assert await seats.all_back() == [Usage(3, 0)]

    async def test_by_the_older_route_are_charged_by_the_length_of_the_text(
        self, seats: FreeSeats, client: ollama.AsyncClient
    ) -> None:
        assert (await client.embeddings("smollm2", "x" * 76)).embedding
        assert await seats.all_back() == [Usage(20, 0)]

    async def test_of_many_texts_take_a_seat_for_every_few_in_order(
        self, server: ScriptedModelServer, seats: FreeSeats, client: ollama.AsyncClient
    ) -> None:
        texts = [f"text {number}" for number in range(40)]
        answer = await client.embed("smollm2", texts)
        alone = await client.embed("smollm2", texts[39])
        assert len(answer.embeddings) == 40
        assert list(answer.embeddings[39]) == list(alone.embeddings[0])
        assert answer.prompt_eval_count == 80
        assert [len(each.body["input"]) for each in server.requests[:3]] == [16, 16, 8]  # type: ignore[arg-type]
        assert seats.taken == 4

    async def test_of_a_model_that_is_missing_say_so(self, client: ollama.AsyncClient) -> None:
        with pytest.raises(ModelError, match="not installed"):
            await client.embed("other", "x")


class TestAnAnswerWithoutAStream:
    async def test_has_everything_that_the_stream_had(
        self, server: ScriptedModelServer, client: ollama.AsyncClient
    ) -> None:
        server.enqueue(Script.model_validate({"thinking": ["hm", " so"], "text": "a b"}))
        answer = await client.chat("smollm2", ASK)
        assert (answer.message.thinking, answer.message.content) == ("hm so", "a b")
        assert (answer.done, answer.done_reason, answer.eval_count) == (True, "stop", 4)

    async def test_of_generate_is_joined_too(self, client: ollama.AsyncClient) -> None:
        assert (await client.generate("smollm2", "x y")).response == "You said: x y"

    async def test_is_cut_where_the_server_is_silent(
        self, server: ScriptedModelServer, client: ollama.AsyncClient
    ) -> None:
        server.answer_with(Script(cut_at=1))
        with pytest.raises(ModelStreamCut):
            await client.chat("smollm2", ASK)


async def _listen(
    client: ollama.AsyncClient, *, until: str = "", heard: asyncio.Event | None = None
) -> None:
    async for part in await client.chat("smollm2", ASK, stream=True):
        if heard is not None and part.message.content == until:
            heard.set()
