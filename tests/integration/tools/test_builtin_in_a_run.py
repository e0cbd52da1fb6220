"""The tools that come with the service, as the model of a real run calls them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.model_server import Script, ToolCall
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service
from tests.support.sites import answer, site


@pytest.fixture(scope="module")
async def service(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    async with running_service(postgres, builtin_tools=("fetch", "time")) as running:
        yield running


async def turn(service: RunningService, *calls: ToolCall) -> list[dict[str, Any]]:
    """Let the model make these calls in one turn; return their results."""
    service.model.enqueue(Script(tool_calls=calls), Script(text="Done."))
    client = service.sdk("alice")
    thread = await client.threads.create()
    said: dict[str, Any] = {"messages": [{"role": "user", "content": "go on"}]}
    await client.runs.wait(thread["thread_id"], "agent", input=said)
    state: Any = await client.threads.get_state(thread["thread_id"])
    return [each for each in state["values"]["messages"] if each["type"] == "tool"]


class TestTheModel:
    async def test_is_offered_them(self, service: RunningService) -> None:
        await turn(service, ToolCall(name="time_now", arguments={}))
        offered: Any = service.model.requests[-1].body["tools"]
        names = {each["function"]["name"] for each in offered}
        assert names == {"fetch", "time_now", "time_convert"}

    async def test_is_told_the_time(self, service: RunningService) -> None:
        call = ToolCall(
            name="time_convert",
            arguments={
                "time": "2026-07-01T12:00",
                "from_timezone": "UTC",
                "to_timezone": "Europe/Berlin",
            },
        )
        (result,) = await turn(service, call)
        assert json.loads(result["content"])["to"]["time"] == "2026-07-01T14:00:00"

    async def test_reaches_nothing_inside_by_any_address(self, service: RunningService) -> None:
        async with site({"/": answer(b"inner")}) as inner:
            port = inner.url.rsplit(":", 1)[-1]
            urls = [
                inner.url,
                f"http://localhost:{port}/",
                f"http://[::ffff:127.0.0.1]:{port}/",
                f"http://2130706433:{port}/",
                "http://169.254.169.254/latest/meta-data/",
                service.model.url + "/api/tags",
                service.url + "/threads",
            ]
            calls = [ToolCall(name="fetch", arguments={"url": url}) for url in urls]
            results = await turn(service, *calls)
        assert [each["status"] for each in results] == ["error"] * len(urls)
        assert all(each["content"].startswith("The address must ") for each in results)
        assert inner.connections == 0

    async def test_that_forges_arguments_is_told_which_do_not_fit(
        self, service: RunningService
    ) -> None:
        arguments = {"url": "https://stoa.dev", "max_length": 10**9}
        (result,) = await turn(service, ToolCall(name="fetch", arguments=arguments))
        assert result["status"] == "error"
        assert "max_length" in result["content"]
