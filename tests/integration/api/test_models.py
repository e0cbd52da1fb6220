"""The models that there are to choose from, and runs that have chosen one."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import mcp_types as types
import orjson
import pytest

from tests.integration.admin.conftest import ADMINS
from tests.integration.api.approving import note
from tests.support.frames import new_thread, read_run, start_run
from tests.support.held_ports import held_port
from tests.support.model_server import Script, ScriptedModelServer, ToolCall
from tests.support.model_server.journal import RecordedRequest
from tests.support.postgres import PostgresServer
from tests.support.raw_server import Exchange, RawServer, raw_server
from tests.support.scheduled import MUCH_LATER, bring_forward
from tests.support.service import RunningService, running_service, running_worker
from tests.support.tool_servers.pools import QUICK
from tests.support.tool_servers.recording import recording_server

PATIENCE = 60.0
PNG = base64.b64encode(b"\x89PNG").decode()
LARGE, GONE = "large:8b", "gone:latest"
PUBLISHED = {
    "far": {"models": {LARGE: {"cost": {"input": 0.5, "output": 1.5}, "limit": {"output": 96}}}}
}
ECHO_GRAPH = """
from typing import TypedDict
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph

class Told(TypedDict, total=False):
    told: str

async def tell(state: Told, config: RunnableConfig) -> Told:
    return {"told": repr(config["configurable"].get("model"))}

graph = StateGraph(Told)
graph.add_node("tell", tell)
graph.add_edge(START, "tell")
"""


@dataclass
class Source:
    """Where prices are published, when a test lets them be."""

    server: RawServer
    may_answer: asyncio.Event
    published: bytes


@dataclass
class Shop:
    """A service with models to choose from, each on a server of its own."""

    service: RunningService
    small: ScriptedModelServer
    large: ScriptedModelServer
    source: Source
    port_of_gone: int

    def somebody(self) -> httpx.AsyncClient:
        return self.service.client(uuid4().hex)

    async def models(self) -> dict[str, dict[str, Any]]:
        answer = await self.somebody().get("/models")
        assert answer.status_code == 200, answer.text
        return {each["model"]: each for each in answer.json()}


@pytest.fixture(scope="module")
async def shop(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "echo.py").write_text(ECHO_GRAPH, encoding="utf-8")
    graphs = folder / "langgraph.json"
    graphs.write_text(json.dumps({"graphs": {"echo": "./echo.py:graph"}}), encoding="utf-8")
    program = {"command": sys.executable, "args": ["-I", "-S", str(QUICK)]}
    desk = {**program, "stoa": {"approval": {"note": "always", "*": "never"}}}
    catalogue = folder / "mcp.json"
    may_answer = asyncio.Event()
    may_answer.set()

    async def publish(exchange: Exchange) -> None:
        await may_answer.wait()
        await exchange.answer(source.published)

    async with AsyncExitStack() as stack:
        small = await stack.enter_async_context(ScriptedModelServer(slots=8))
        large = await stack.enter_async_context(
            ScriptedModelServer(
                slots=8,
                models=[LARGE],
                capabilities=["completion", "tools", "vision"],
                made_for=4096,
            )
        )
        source = Source(
            await stack.enter_async_context(raw_server(publish)),
            may_answer,
            orjson.dumps(PUBLISHED),
        )
        port = stack.enter_context(held_port())
        pictures = await stack.enter_async_context(recording_server())
        shown = types.ImageContent(data=PNG, mime_type="image/png")
        pictures.offer("draw", types.CallToolResult(content=[shown]))
        servers = {"desk": desk, "pictures": {"url": pictures.url}}
        catalogue.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        service = await stack.enter_async_context(
            running_service(
                postgres,
                pool=[
                    {"name": "small", "url": small.url, "capacity": 8},
                    {
                        "name": "large",
                        "url": large.url,
                        "model": LARGE,
                        "context": 8192,
                        "output": 128,
                        "capacity": 8,
                        "provider": "far",
                    },
                    {"name": "gone", "url": f"http://127.0.0.1:{port}", "model": "gone"},
                    {"name": "embed", "url": small.url, "model": "minilm"},
                ],
                embedding_model="minilm",
                model_context=4096,
                model_output=64,
                graphs=graphs,
                mcp_config=[catalogue],
                mcp_folder=folder / "mcp",
                mcp_sandbox="none",
                catalogue_url=source.server.url,
                catalogue_folder=folder / "prices",
                requests_per_minute=1_000_000,
            )
        )
        yield Shop(service, small, large, source, port)


def choosing(model: object) -> dict[str, Any]:
    return {"config": {"configurable": {"model": model}}}


async def seconds_told(client: httpx.AsyncClient) -> float | None:
    """How long a call of the default model takes, as people are told."""
    seconds: float | None = (await client.get("/models")).json()[0]["seat_seconds_per_call"]
    return seconds


def last_call(server: ScriptedModelServer, text: str) -> RecordedRequest:
    """The newest call in which somebody said this."""
    return next(each for each in reversed(server.requests) if text in json.dumps(each.body))


class TestTheModels:
    async def test_are_listed_with_what_each_can_and_costs(self, shop: Shop) -> None:
        operator = shop.service.client("operator", groups=ADMINS)
        answer = await operator.post("/admin/models/refresh")
        assert answer.status_code == 200, answer.text
        found = await shop.models()
        assert list(found) == ["smollm2:latest", LARGE, GONE]
        for each in found.values():
            each.pop("digest")
            each.pop("seat_seconds_per_call")
        assert found["smollm2:latest"] == {
            "model": "smollm2:latest",
            "default": True,
            "status": "available",
            "context_length": 4096,
            "max_output": 64,
            "model_context_length": 131_072,
            "capabilities": ["tools", "thinking"],
            "size_bytes": 1,
            "price": {
                "source": "unpriced",
                "input_per_million": None,
                "output_per_million": None,
                "currency": None,
            },
            "cost": "seat_seconds",
        }
        assert found[LARGE] == {
            "model": LARGE,
            "default": False,
            "status": "available",
            "context_length": 4096,
            "max_output": 96,
            "model_context_length": 4096,
            "capabilities": ["tools", "vision"],
            "size_bytes": 1,
            "price": {
                "source": "catalogue",
                "input_per_million": 0.5,
                "output_per_million": 1.5,
                "currency": "USD",
            },
            "cost": "tokens",
        }

    async def test_say_how_long_calls_have_lately_taken(self, shop: Shop) -> None:
        client = shop.somebody()
        await read_run(client, await start_run(client, await new_thread(client)))
        async with asyncio.timeout(PATIENCE):
            while not await shop.service.web.services.standing.call_seconds():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        web = await shop.service.start_web()
        reader = shop.service.client(uuid4().hex, url=web.url)
        async with asyncio.timeout(PATIENCE):
            while await seconds_told(reader) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await web.stop()

    async def test_are_nobodys_who_has_not_signed_in(self, shop: Shop) -> None:
        assert (await shop.service.client(None).get("/models")).status_code == 401

    async def test_say_which_does_not_work_and_that_it_does_again(self, shop: Shop) -> None:
        assert (await shop.models())[GONE]["status"] == "unavailable"
        async with ScriptedModelServer(models=["gone"], port=shop.port_of_gone):
            async with asyncio.timeout(PATIENCE):
                while (await shop.models())[GONE]["status"] != "available":  # noqa: ASYNC110
                    await asyncio.sleep(0.05)

    async def test_are_listed_while_prices_cannot_be_had(self, shop: Shop) -> None:
        operator = shop.service.client("operator", groups=ADMINS)
        assert (await operator.post("/admin/models/refresh")).status_code == 200
        good, shop.source.published = shop.source.published, b"<html></html>"
        try:
            refused = await operator.post("/admin/models/refresh")
        finally:
            shop.source.published = good
        assert (refused.status_code, refused.json()["code"]) == (502, "catalogue_unavailable")
        assert (await shop.models())[LARGE]["price"]["source"] == "catalogue"


class TestManyWhoAsk:
    async def test_are_answered_by_one_request(
        self, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        catalogue = shop.service.web.services.catalogue
        original, waiting, all_wait = catalogue.refresh, 0, asyncio.Event()

        async def counted() -> None:
            nonlocal waiting
            waiting += 1
            if waiting == 6:
                all_wait.set()
            await original()

        monkeypatch.setattr(catalogue, "refresh", counted)
        shop.source.may_answer.clear()
        shop.source.server.asked.clear()
        operators = [shop.service.client(f"operator {n}", groups=ADMINS) for n in range(6)]
        explicit = [asyncio.create_task(each.post("/admin/models/refresh")) for each in operators]
        try:
            await all_wait.wait()
            listed = await asyncio.gather(*(shop.models() for _ in range(6)))
        finally:
            shop.source.may_answer.set()
        answers = await asyncio.gather(*explicit)
        assert [each.status_code for each in answers] == [200] * 6
        assert all("smollm2:latest" in each for each in listed)
        assert shop.source.server.asked.total() == 1
        assert len(list(shop.service.settings.catalogue_folder.iterdir())) == 1


class TestARunThatChooses:
    async def test_speaks_with_the_model_that_it_has_chosen(self, shop: Shop) -> None:
        client, text = shop.somebody(), uuid4().hex
        thread = await new_thread(client)
        for named in (LARGE, "smollm2", None):
            location = await start_run(client, thread, f"{text} {named}", **choosing(named))
            assert (await read_run(client, location))[-1].data["status"] == "success"
        large = last_call(shop.large, f"{text} {LARGE}")
        assert large.body["model"] == LARGE
        assert large.options["num_ctx"] == 8192
        assert large.options["num_predict"] == 128
        assert len([each for each in shop.large.requests if text in json.dumps(each.body)]) == 1
        small = last_call(shop.small, f"{text} None")
        assert small.options["num_ctx"] == 4096
        run = (await client.get(f"/threads/{thread}/runs", params={"select": ["kwargs"]})).json()
        chosen = [each["kwargs"]["config"].get("configurable") for each in run]
        assert chosen == [{}, {"model": "smollm2:latest"}, {"model": LARGE}]

    async def test_is_told_no_more_than_its_model_was_made_for(self, shop: Shop) -> None:
        """Though the settings pin its window to twice as much: there is room for one of these."""
        client, earlier, now = shop.somebody(), uuid4().hex, uuid4().hex
        said = [{"role": "user", "content": each} for each in (f"{earlier} {'x ' * 9000}", now)]
        location = await start_run(
            client, await new_thread(client), graph_input={"messages": said}, **choosing(LARGE)
        )
        assert (await read_run(client, location))[-1].data["status"] == "success"
        assert earlier not in json.dumps(last_call(shop.large, now).body)

    @pytest.mark.parametrize("named", ["none", "minilm", "", 5, {"a": 1}, "x" * 500])
    async def test_is_refused_what_there_is_not(self, shop: Shop, named: object) -> None:
        client = shop.somebody()
        body = {
            "assistant_id": "agent",
            "input": {"messages": [{"role": "user", "content": "Hello"}]},
            **choosing(named),
        }
        answer = await client.post(f"/threads/{await new_thread(client)}/runs", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "model_unknown")

    async def test_by_langgraphs_own_client(self, shop: Shop) -> None:
        sdk, text = shop.service.sdk(uuid4().hex), uuid4().hex
        thread = await sdk.threads.create()
        said: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
        await sdk.runs.wait(
            thread["thread_id"],
            "agent",
            input=said,
            config={"configurable": {"model": LARGE}},
        )
        assert last_call(shop.large, text).body["model"] == LARGE

    async def test_later_chooses_now(self, shop: Shop) -> None:
        client, text = shop.somebody(), uuid4().hex
        location = await start_run(
            client, await new_thread(client), text, after_seconds=MUCH_LATER, **choosing(LARGE)
        )
        await bring_forward(shop.service, location)
        assert (await read_run(client, location))[-1].data["status"] == "success"
        assert last_call(shop.large, text).body["model"] == LARGE

    async def test_goes_on_with_it_after_its_person_was_asked(self, shop: Shop) -> None:
        client = shop.somebody()
        shop.large.enqueue(Script(text="I will write.", tool_calls=(note("one"),)))
        thread = await new_thread(client)
        location = await start_run(client, thread, "Write it down", **choosing(LARGE))
        assert (await read_run(client, location))[-1].data["status"] == "interrupted"
        before = len(shop.large.requests)
        (asked,) = (await client.get("/approvals")).json()
        said = {"decision": "approve", "arguments_sha256": asked["arguments_sha256"]}
        answer = await client.post(f"/approvals/{asked['approval_id']}", json=said)
        assert answer.status_code == 200, answer.text
        assert (await read_run(client, location))[-1].data["status"] == "success"
        assert len(shop.large.requests) == before + 1

    async def test_may_repeat_its_choice_with_the_answer_and_not_change_it(
        self, shop: Shop
    ) -> None:
        client = shop.somebody()
        shop.large.enqueue(Script(text="I will write.", tool_calls=(note("one"),)))
        thread = await new_thread(client)
        location = await start_run(client, thread, "Write it down", **choosing(LARGE))
        assert (await read_run(client, location))[-1].data["status"] == "interrupted"
        resume = {"decisions": [{"type": "approve"}]}
        body: dict[str, Any] = {"assistant_id": "agent", "command": {"resume": resume}}
        other = await client.post(f"/threads/{thread}/runs", json={**body, **choosing("smollm2")})
        assert (other.status_code, other.json()["code"]) == (422, "invalid_input")
        same = await client.post(f"/threads/{thread}/runs", json={**body, **choosing(LARGE)})
        assert same.status_code == 200, same.text
        assert (await read_run(client, location))[-1].data["status"] == "success"

    @pytest.mark.parametrize(("named", "sees"), [(LARGE, True), ("smollm2", False)])
    async def test_is_shown_pictures_where_its_model_says_that_it_reads_them(
        self, shop: Shop, named: str, sees: bool
    ) -> None:
        client, text = shop.somebody(), uuid4().hex
        server = shop.large if sees else shop.small
        server.enqueue(Script(tool_calls=(ToolCall(name="pictures__draw"),)))
        location = await start_run(client, await new_thread(client), text, **choosing(named))
        assert (await read_run(client, location))[-1].data["status"] == "success"
        messages = last_call(server, text).body["messages"]
        assert isinstance(messages, list)
        assert messages[-1]["role"] == "tool"
        assert bool(messages[-1].get("images")) is sees

    async def test_of_an_operators_graph_hands_on_what_was_said(self, shop: Shop) -> None:
        client = shop.somebody()
        for named in ("none of the service's", 5):
            location = await start_run(
                client,
                await new_thread(client),
                assistant="echo",
                graph_input={"told": ""},
                **choosing(named),
            )
            frames = await read_run(client, location)
            told = [each.data["told"] for each in frames if each.event == "values"][-1]
            assert told == repr(named)


class TestAWorkerThatTakesARunUp:
    async def test_speaks_with_what_was_chosen(self, postgres: PostgresServer) -> None:
        async with (
            ScriptedModelServer() as small,
            ScriptedModelServer(models=["large"]) as large,
            running_service(
                postgres,
                worker=False,
                pool=[
                    {"name": "small", "url": small.url},
                    {"name": "large", "url": large.url, "model": "large"},
                ],
            ) as service,
        ):
            client = service.client("somebody")
            large.enqueue(Script(stall_at=0))
            async with running_worker(service.settings):
                location = await start_run(client, await new_thread(client), **choosing("large"))
                await large.wait_for_stall()
            async with running_worker(service.settings):
                assert (await read_run(client, location))[-1].data["status"] == "success"
            assert len(large.requests) == 2
            assert small.requests == []

    async def test_says_so_where_it_has_no_such_model_any_more(
        self, postgres: PostgresServer
    ) -> None:
        async with (
            ScriptedModelServer() as small,
            running_service(
                postgres,
                worker=False,
                pool=[
                    {"name": "small", "url": small.url},
                    {"name": "large", "url": small.url, "model": "large"},
                ],
            ) as service,
        ):
            client = service.client("somebody")
            location = await start_run(client, await new_thread(client), **choosing("large"))
            fewer = service.settings.model_copy(update={"pool": service.settings.pool[:1]})
            async with running_worker(fewer):
                frames = await read_run(client, location)
            (error,) = [each.data for each in frames if each.event == "error"]
            assert error["error"] == "model_missing"
            assert small.requests == []
