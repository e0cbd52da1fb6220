"""Whom a policy asks, in whole turns: the operator's rules, a person's word, and hosts to visit."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import mcp_types as types
import pytest
from langgraph_sdk.client import LangGraphClient

from app.tools.builtin import builtin_tools
from app.tools.builtin.visits import Visits
from app.worker import equip
from tests.support.model_server import Script, ToolCall
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service
from tests.support.sites import Site, answer, site
from tests.support.tool_servers.recording import Heard, RecordingServer, recording_server, text

SMALL = {
    "type": "object",
    "properties": {"amount": {"type": "number", "maximum": 100}},
    "required": ["amount"],
}
RULES = {
    "pay": [{"when": SMALL, "ask": "never"}, {"ask": "first_use"}],
    "close": "always",
}
PAGE = answer(b"<h1>Hello</h1>")


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[RecordingServer]:
    async with recording_server() as running:
        for tool in ("pay", "close", "look"):
            running.offer(tool, "done")
        yield running


@pytest.fixture(scope="module")
async def sites() -> AsyncIterator[tuple[Site, Site]]:
    async with site({"/a": PAGE, "/b": PAGE}) as one, site({"/a": PAGE}) as other:
        yield one, other


@pytest.fixture(scope="module")
async def service(
    postgres: PostgresServer,
    server: RecordingServer,
    sites: tuple[Site, Site],
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[RunningService]:
    """Its sites are on loopback, where only what is trusted is fetched from."""
    folder = tmp_path_factory.mktemp("tools")
    catalogue = folder / "mcp.json"
    entries = {"bank": {"url": server.url, "stoa": {"approval": RULES}}}
    catalogue.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    trusted = frozenset().union(*(each.trusted for each in sites))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equip, "builtin_tools", partial(builtin_tools, trusted=trusted))
        patch.setattr(equip, "Visits", partial(Visits, trusted=trusted))
        async with running_service(
            postgres, mcp_config=[catalogue], mcp_folder=folder / "mcp", model_context=16_384
        ) as running:
            yield running


class Person:
    """Somebody in a thread of their own."""

    def __init__(self, service: RunningService) -> None:
        name = f"somebody {uuid4()}"
        self._service = service
        self._sdk: LangGraphClient = service.sdk(name)
        self.http: httpx.AsyncClient = service.client(name)
        self.thread = ""

    async def says(self, *turns: list[ToolCall]) -> list[dict[str, Any]]:
        """Have the model make calls, turn by turn; return what the person is asked then."""
        scripts = [Script(tool_calls=tuple(calls)) for calls in turns]
        self._service.model.enqueue(*scripts)  # then it says what it was told
        if not self.thread:
            self.thread = (await self._sdk.threads.create())["thread_id"]
        said: Any = {"messages": [{"role": "user", "content": "do it"}]}
        await self._sdk.runs.wait(self.thread, "agent", input=said)
        return await self.asked()

    async def asked(self) -> list[dict[str, Any]]:
        """What waits for their word."""
        found: list[dict[str, Any]] = (await self.http.get("/approvals")).json()
        return found

    async def approves(self, question: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        """Approve a call, wait for the run; return what the person is asked next."""
        return await self.decides(question, decision="approve", **more)

    async def decides(self, question: dict[str, Any], **body: Any) -> list[dict[str, Any]]:
        """The same with another decision."""
        answer = await self.answers(question, **body)
        assert answer.status_code == 200, answer.text
        await self._sdk.runs.join(self.thread, question["run_id"])
        return await self.asked()

    async def answers(self, question: dict[str, Any], **body: Any) -> httpx.Response:
        """Send a decision on the call as it was shown."""
        body["arguments_sha256"] = question["arguments_sha256"]
        return await self.http.post(f"/approvals/{question['approval_id']}", json=body)

    async def wants(self, **rules: str) -> None:
        """Say when they want to be asked."""
        said = await self.http.put("/connections/bank/approval", json={"rules": rules})
        assert said.status_code == 200, said.text

    async def results(self) -> list[str]:
        """What came of the calls."""
        state: Any = await self._sdk.threads.get_state(self.thread)
        return [each["content"] for each in state["values"]["messages"] if each["type"] == "tool"]


@pytest.fixture
def alice(service: RunningService) -> Person:
    return Person(service)


def pay(amount: float) -> ToolCall:
    return ToolCall(name="bank__pay", arguments={"amount": amount})


def look() -> ToolCall:
    return ToolCall(name="bank__look", arguments={})


def fetch(url: str) -> ToolCall:
    return ToolCall(name="fetch", arguments={"url": url})


class TestTheOperatorsRules:
    async def test_go_by_the_calls_arguments(self, alice: Person, server: RecordingServer) -> None:
        before = len(server.made("pay"))
        assert await alice.says([pay(100)]) == []
        assert len(server.made("pay")) == before + 1
        (question,) = await alice.says([pay(101)])
        assert question["arguments"] == {"amount": 101}
        assert len(server.made("pay")) == before + 1
        assert await alice.approves(question) == []
        assert server.made("pay")[-1].arguments == {"amount": 101}

    async def test_open_a_conversation_where_the_first_use_is_approved(
        self, service: RunningService, alice: Person
    ) -> None:
        (question,) = await alice.says([pay(101)])
        await alice.approves(question)
        assert await alice.says([pay(102)]) == []
        assert len(await Person(service).says([pay(103)])) == 1

    async def test_that_ask_always_are_not_opened_by_anybody(self, alice: Person) -> None:
        close = ToolCall(name="bank__close", arguments={})
        (question,) = await alice.says([close])
        assert not question["may_open_thread"]
        refused = await alice.answers(question, decision="approve", scope="thread")
        assert refused.status_code == 422
        await alice.approves(question)
        assert len(await alice.says([close])) == 1


class TestAPersonsWord:
    async def test_has_them_asked_where_nobody_else_would(
        self, service: RunningService, alice: Person
    ) -> None:
        await alice.wants(look="always")
        (question,) = await alice.says([look()])
        assert await Person(service).says([look()]) == []
        assert question["may_open_thread"]
        await alice.approves(question, scope="thread")
        assert await alice.says([look()]) == []

    async def test_holds_for_a_run_that_is_under_way(
        self, service: RunningService, alice: Person, server: RecordingServer
    ) -> None:
        """Given while the first of two calls is being made, it stops the second."""

        async def meanwhile(_: Heard) -> types.CallToolResult:
            await alice.wants(**{"*": "always"})
            server.offer("look", "done")
            return text("seen")

        server.offer("look", meanwhile)
        (question,) = await alice.says([look()], [look()])
        assert question["asked"]["changed"] == []
        assert await alice.results() == ["seen"]
        assert await alice.approves(question) == []
        assert await alice.results() == ["seen", "done"]

    async def test_that_changes_before_an_approval_has_the_call_asked_about_again(
        self, alice: Person, server: RecordingServer
    ) -> None:
        (question,) = await alice.says([pay(101)])
        before = len(server.made("pay"))
        await alice.wants(pay="always")
        (again,) = await alice.approves(question)
        assert again["asked"]["changed"] == ["policy"]
        assert again["arguments"] == question["arguments"]
        assert len(server.made("pay")) == before
        assert await alice.approves(again) == []
        assert len(server.made("pay")) == before + 1

    async def test_makes_nothing_looser(self, alice: Person) -> None:
        await alice.wants(close="first_use")
        close = ToolCall(name="bank__close", arguments={})
        (question,) = await alice.says([close])
        await alice.approves(question)
        assert len(await alice.says([close])) == 1


class TestHosts:
    async def test_are_asked_about_once_each_in_a_conversation(
        self, service: RunningService, alice: Person, sites: tuple[Site, Site]
    ) -> None:
        one, other = sites
        (question,) = await alice.says([fetch(one.url + "/a")])
        assert (question["server"], question["tool"]) == (None, "fetch")
        assert question["subject"] == one.url.removeprefix("http://")
        assert one.connections == 0
        assert await alice.approves(question) == []
        assert await alice.says([fetch(one.url + "/b")]) == []
        assert [each.splitlines()[0] for each in await alice.results()] == [
            f"URL: {one.url}/a",
            f"URL: {one.url}/b",
        ]
        (question,) = await alice.says([fetch(other.url + "/a")])
        assert question["subject"] == other.url.removeprefix("http://")
        assert other.connections == 0
        assert len(await Person(service).says([fetch(one.url + "/a")])) == 1

    async def test_that_a_page_leads_to_are_asked_about_too(
        self, alice: Person, sites: tuple[Site, Site]
    ) -> None:
        one, other = sites
        one.replies["/away"] = answer(b"", status="302 Found", Location=other.url + "/a")
        before = other.connections
        (question,) = await alice.says([fetch(one.url + "/away")], [fetch(other.url + "/a")])
        (question,) = await alice.approves(question)
        (told,) = await alice.results()
        assert told.endswith(f"fetch this: {other.url}/a")
        assert question["subject"] == other.url.removeprefix("http://")
        assert other.connections == before

    async def test_that_a_person_puts_in_place_of_another_open_none(
        self, alice: Person, sites: tuple[Site, Site]
    ) -> None:
        """Neither of them: the edited call alone is approved."""
        one, other = sites
        (question,) = await alice.says([fetch(one.url + "/a")])
        edited = {"url": other.url + "/a"}
        assert await alice.decides(question, decision="edit", arguments=edited) == []
        (result,) = await alice.results()
        assert result.startswith(f"URL: {other.url}/a")
        for url in (one.url, other.url):
            (question,) = await alice.says([fetch(url + "/a")])
            assert await alice.decides(question, decision="reject") == []
