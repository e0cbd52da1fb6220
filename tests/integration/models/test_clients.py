"""Whatever client of Ollama a graph builds, wherever and however: its calls take seats."""

from __future__ import annotations

import asyncio
import contextvars
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType
from typing import TypedDict

import httpx
import ollama
import pytest
from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM
from langgraph.graph import START, StateGraph

from app.models.chat import build_chat_model
from app.models.clients import NOWHERE, patch_clients
from app.models.errors import ModelCallOutsideRun, ModelUnsupported
from app.models.scope import RunScope
from tests.support.model_server import Script, ScriptedModelServer
from tests.support.models import FreeSeats, model_calls

ASK = [{"role": "user", "content": "hi"}]
ELSEWHERE = "http://127.0.0.1:1/ollama"
SAID = "You said: hi"


@pytest.fixture(autouse=True)
def _patched() -> None:
    patch_clients()


class Said(TypedDict):
    """What the model said."""

    said: str


async def chat_ollama() -> str:
    return (await ChatOllama(model="smollm2").ainvoke("hi")).text


async def chat_ollama_with_an_address_of_its_own() -> str:
    return (await ChatOllama(model="smollm2", base_url=ELSEWHERE).ainvoke("hi")).text


async def chat_ollama_with_a_transport_of_its_own() -> str:
    kwargs = {"transport": httpx.AsyncHTTPTransport(retries=3), "timeout": 0.001}
    model = ChatOllama(
        model="smollm2",
        client_kwargs={"headers": {"Authorization": "Bearer secret"}},
        async_client_kwargs=kwargs,
    )
    return (await model.ainvoke("hi")).text


async def chat_ollama_with_a_proxy_of_its_own() -> str:
    kwargs = {"proxy": "http://127.0.0.1:1", "verify": False, "follow_redirects": True}
    return (await ChatOllama(model="smollm2", client_kwargs=kwargs).ainvoke("hi")).text


async def ollama_llm() -> str:
    return await OllamaLLM(model="smollm2").ainvoke("hi")


async def async_client() -> str:
    async with ollama.AsyncClient(host=ELSEWHERE) as client:
        return (await client.chat("smollm2", ASK)).message.content or ""


async def client_in_a_thread() -> str:
    answer = await asyncio.to_thread(ollama.Client(ELSEWHERE).chat, "smollm2", ASK)
    return answer.message.content or ""


async def stream_in_a_thread() -> str:
    def listen() -> str:
        parts = ollama.Client().chat("smollm2", ASK, stream=True)
        return "".join(part.message.content or "" for part in parts)

    return await asyncio.to_thread(listen)


async def module_in_a_thread() -> str:
    return (await asyncio.to_thread(ollama.generate, "smollm2", "hi")).response or ""


async def chat_ollama_in_a_thread() -> str:
    return (await asyncio.to_thread(ChatOllama(model="smollm2").invoke, "hi")).text


async def loop_of_its_own_in_a_thread() -> str:
    """As a node does it that is no coroutine, with a library that is all coroutines."""

    async def listen() -> str:
        parts = ChatOllama(model="smollm2").astream("hi")
        return "".join([part.text async for part in parts])

    return await asyncio.to_thread(lambda: asyncio.run(listen()))


async def thread_with_the_runs_context() -> str:
    said: list[str] = []
    context = contextvars.copy_context()
    model = ChatOllama(model="smollm2")
    thread = threading.Thread(
        target=context.run, args=(lambda: said.append(model.invoke("hi").text),)
    )
    thread.start()
    await asyncio.to_thread(thread.join)
    return said[0]


async def node_that_is_no_coroutine() -> str:
    def node(state: Said) -> Said:
        return {"said": ChatOllama(model="smollm2").invoke("hi").text}

    graph = StateGraph(Said)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    said: str = (await graph.compile().ainvoke({"said": ""}))["said"]
    return said


WAYS = [
    chat_ollama,
    chat_ollama_with_an_address_of_its_own,
    chat_ollama_with_a_transport_of_its_own,
    chat_ollama_with_a_proxy_of_its_own,
    ollama_llm,
    async_client,
    client_in_a_thread,
    stream_in_a_thread,
    module_in_a_thread,
    chat_ollama_in_a_thread,
    loop_of_its_own_in_a_thread,
    node_that_is_no_coroutine,
    thread_with_the_runs_context,
]


class TestAnyClient:
    @pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
    async def test_goes_to_the_seats_server_with_what_is_pinned_there(
        self,
        server: ScriptedModelServer,
        seats: FreeSeats,
        scope: RunScope,
        way: Callable[[], Awaitable[str]],
    ) -> None:
        assert await way() == SAID
        (request,) = server.requests
        assert request.options["num_ctx"] == 2048
        assert request.options["num_predict"] == 64
        assert "authorization" not in request.headers
        (usage,) = await seats.all_back()
        assert usage.output_tokens == 3

    async def test_for_embeddings_does_so_too(
        self, seats: FreeSeats, scope: RunScope, server: ScriptedModelServer
    ) -> None:
        model = OllamaEmbeddings(model="smollm2", base_url=ELSEWHERE)
        assert len(await model.aembed_documents(["a", "b"])) == 2
        assert len(await asyncio.to_thread(model.embed_query, "c")) > 1
        assert len(await seats.all_back()) == len(server.requests) == 2

    async def test_that_was_built_when_the_library_was_imported_does_so_too(
        self, seats: FreeSeats, scope: RunScope
    ) -> None:
        answer = await asyncio.to_thread(_imported(_GRAPH_MODULE).ask)
        assert answer.message.content == SAID
        assert len(await seats.all_back()) == 1

    async def test_serves_one_run_after_the_other(
        self, server: ScriptedModelServer, seats: FreeSeats
    ) -> None:
        model = ChatOllama(model="smollm2")
        for _ in range(2):
            async with model_calls(seats):
                assert (await model.ainvoke("hi")).text == SAID
        assert len(await seats.all_back()) == 2


class TestOutsideOfARun:
    @pytest.mark.parametrize("way", WAYS[:-1], ids=lambda way: way.__name__)
    async def test_nothing_is_asked(
        self, server: ScriptedModelServer, way: Callable[[], Awaitable[str]]
    ) -> None:
        with pytest.raises(ModelCallOutsideRun, match="only be called while a run"):
            await way()
        assert server.requests == []

    async def test_a_thread_that_was_not_given_the_context_is_refused(
        self, scope: RunScope, server: ScriptedModelServer
    ) -> None:
        caught: list[BaseException] = []

        def ask() -> None:
            try:
                ollama.chat("smollm2", ASK)
            except ModelCallOutsideRun as error:
                caught.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        await asyncio.to_thread(thread.join)
        assert len(caught) == 1
        assert server.requests == []

    def test_a_thread_that_outlives_its_worker_is_refused(self) -> None:
        async def run_and_leave() -> contextvars.Context:
            async with model_calls(FreeSeats(ELSEWHERE)):
                return contextvars.copy_context()

        context = asyncio.run(run_and_leave())
        with pytest.raises(ModelCallOutsideRun):
            context.run(ollama.chat, "smollm2", ASK)

    async def test_what_gets_around_the_clients_is_refused(self) -> None:
        async with httpx.AsyncClient(base_url=NOWHERE, trust_env=False) as around:
            with pytest.raises(httpx.ConnectError):
                await around.post("/api/chat", json={})


class TestOtherRequests:
    @pytest.mark.parametrize(
        "ask",
        [
            lambda client: client.list(),
            lambda client: client.ps(),
            lambda client: client.show("smollm2"),
            lambda client: client.pull("smollm2"),
            lambda client: client.push("smollm2"),
            lambda client: client.create("other", from_="smollm2"),
            lambda client: client.copy("smollm2", "other"),
            lambda client: client.delete("smollm2"),
        ],
        ids=["list", "ps", "show", "pull", "push", "create", "copy", "delete"],
    )
    async def test_are_refused_with_a_word_on_what_may_be_asked(
        self,
        server: ScriptedModelServer,
        seats: FreeSeats,
        scope: RunScope,
        ask: Callable[[ollama.AsyncClient], Awaitable[object]],
    ) -> None:
        with pytest.raises(ModelUnsupported, match="Only chat, generate and embed"):
            await ask(ollama.AsyncClient())
        assert seats.taken == 0

    def test_a_model_that_would_look_for_itself_when_it_is_built_is_refused(self) -> None:
        with pytest.raises(ModelUnsupported, match="validate_model_on_init"):
            ChatOllama(model="smollm2", validate_model_on_init=True)

    async def test_the_search_of_ollamas_makers_is_not_reached(
        self, scope: RunScope, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OLLAMA_API_KEY", "key")
        with pytest.raises(ModelUnsupported):
            await ollama.AsyncClient().web_search("what I wrote")


class TestASynchronousCall:
    async def test_on_the_event_loop_raises_and_blocks_nothing(
        self, seats: FreeSeats, scope: RunScope
    ) -> None:
        with pytest.raises(RuntimeError, match="ainvoke"):
            ChatOllama(model="smollm2").invoke("hi")
        assert seats.taken == 0

    @pytest.mark.parametrize("position", [0, 1], ids=["before the first word", "in the middle"])
    @pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
    async def test_in_a_thread_ends_with_its_run(
        self,
        server: ScriptedModelServer,
        seats: FreeSeats,
        scope: RunScope,
        position: int,
        stream: bool,
    ) -> None:
        def ask() -> None:
            if not stream:
                ollama.Client().chat("smollm2", ASK)
            for _ in ollama.Client().chat("smollm2", ASK, stream=True):
                pass

        server.enqueue(Script(stall_at=position))
        asking = asyncio.create_task(asyncio.to_thread(ask))
        await server.wait_for_stall()
        scope.close()
        with pytest.raises(ModelCallOutsideRun):
            await asking
        await server.wait_for_disconnect()
        assert len(await seats.all_back()) == 1

    async def test_in_a_thread_that_breaks_off_closes_the_connection(
        self, server: ScriptedModelServer, seats: FreeSeats, scope: RunScope
    ) -> None:
        def ask() -> str | None:
            for part in ollama.Client().chat("smollm2", ASK, stream=True):
                return part.message.content
            return None

        server.enqueue(Script(stall_at=1))
        assert await asyncio.to_thread(ask) == "You"
        await server.wait_for_disconnect()
        assert len(await seats.all_back()) == 1


class TestWhatAGraphMayChoose:
    async def test_its_own_wishes_hold_as_far_as_they_concern_its_own_answer(
        self, server: ScriptedModelServer, scope: RunScope
    ) -> None:
        options = {"temperature": 0.5, "num_predict": 7, "num_ctx": 9, "num_gpu": 0}
        await ollama.AsyncClient().chat("smollm2", ASK, options=options, keep_alive=0)
        (request,) = server.requests
        assert request.options == {"temperature": 0.5, "num_predict": 7, "num_ctx": 2048}
        assert "keep_alive" not in request.body

    @pytest.mark.parametrize("wanted", [-1, -2, 0, 65, 10**9, True, 1.5])
    async def test_an_answer_always_has_an_end(
        self, server: ScriptedModelServer, scope: RunScope, wanted: object
    ) -> None:
        body = {"model": "smollm2", "messages": ASK, "options": {"num_predict": wanted}}
        await ollama.AsyncClient()._client.post("/api/chat", json=body)
        assert server.requests[0].options["num_predict"] == 64

    @pytest.mark.parametrize(
        "body",
        [b"", b"no json", b"[]", b'{"model":7}', b'{"model":"m","options":[]}', b"[" * 99999],
    )
    async def test_what_is_no_request_is_refused_before_it_takes_a_seat(
        self, seats: FreeSeats, scope: RunScope, body: bytes
    ) -> None:
        with pytest.raises(ModelUnsupported):
            await ollama.AsyncClient()._client.post("/api/chat", content=body)
        assert seats.taken == 0


class TestTheServicesModel:
    async def test_opens_no_connection_of_its_own(
        self, server: ScriptedModelServer, scope: RunScope, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as proxy:
            address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "OLLAMA_HOST"):
                monkeypatch.setenv(name, address)
            model = build_chat_model("smollm2", context=2048, output=64)
            assert (await model.ainvoke("hi")).text == SAID


_GRAPH_MODULE = """
from ollama import chat

def ask():
    return chat("smollm2", [{"role": "user", "content": "hi"}])
"""


def _imported(source: str) -> ModuleType:
    spec = spec_from_loader("graph_of_somebody_elses", loader=None)
    assert spec is not None
    module = module_from_spec(spec)
    exec(source, module.__dict__)  # noqa: S102 - what an operator's file would do
    sys.modules.pop(spec.name, None)
    return module
