"""What a graph has emitted is stored and streamed as it was, whatever it does to it afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from tests.support.frames import Frame, new_thread, read_run, start_run
from tests.support.graphs.changing import BURST
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

GRAPHS = Path(__file__).parents[2] / "support" / "graphs" / "langgraph.json"
AS_IT_WAS = "as it was"

TOLD: dict[str, Any] = {
    "list": [],
    "object": {},
    "null": None,
    "nested": {"a": [{"b": [1, {"c": AS_IT_WAS}]}], "d": {"e": []}},
    "nan": None,
    "infinity": None,
    "uuid": "6f1c1f0e-6f0f-4f8a-8f3b-0d4e0a8f6a51",
    "moment": "2026-03-01T00:00:00+00:00",
    "decimal": "1.50",
    "bytes": "YWJj",
    "set": [1],
    "nul": "a\u0000b",
    "surrogate": "a\ud800b",
    "large": 2**70,
    "model": {"inner": {"a": [AS_IT_WAS]}},
    "record": {"inner": {"a": [AS_IT_WAS]}},
    "broken": "<Broken>",
    "lock": "<lock>",
}


@pytest.fixture(scope="module")
async def service(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    async with running_service(postgres, graphs=GRAPHS) as running:
        yield running


@pytest.fixture
def person(service: RunningService) -> httpx.AsyncClient:
    return service.client("ada")


async def stored(service: RunningService, location: str) -> list[tuple[str, bytes]]:
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    try:
        rows = await connection.fetch(
            "SELECT event, data FROM run_events WHERE run_id = $1::uuid ORDER BY seq",
            location.rpartition("/")[2],
        )
    finally:
        await connection.close()
    return [(row["event"], row["data"]) for row in rows]


async def run(
    client: httpx.AsyncClient, way: str, *modes: str
) -> tuple[str, list[Frame], dict[str, Any]]:
    """Where a run is that emits in this way, its stream, and how it ended."""
    thread_id = await new_thread(client)
    given = {"way": way, "facts": {"begun": []}}
    location = await start_run(
        client, thread_id, assistant="changing", graph_input=given, modes=modes
    )
    frames = await read_run(client, location)
    return location, frames, frames[-1].data


def data_of(frame: Frame) -> bytes:
    return frame.raw.partition(b"\ndata: ")[2].partition(b"\n")[0]


@pytest.mark.parametrize("way", ["node", "task", "thread"])
async def test_each_kind_is_told_as_it_was_and_in_a_form_that_is_defined(
    service: RunningService, person: httpx.AsyncClient, way: str
) -> None:
    location, frames, end = await run(person, way, "custom", "updates", "values", "tasks", "debug")
    assert end["status"] == "success"
    told = {
        frame.data["kind"]: frame.data["payload"] for frame in frames if frame.event == "custom"
    }
    for kind in ("message", "chunk"):
        message = told.pop(kind)
        assert message["content"] == AS_IT_WAS
    assert told == TOLD
    kept = await stored(service, location)
    customs = [data for event, data in kept if event == "custom"]
    assert customs == [data_of(frame) for frame in frames if frame.event == "custom"]
    assert b"spoilt" not in b"".join(customs)
    assert b"a secret" not in b"".join(data for _, data in kept)

    written = [frame.data for frame in frames if frame.event == "updates"]
    assert written[0] == {"emit": {"facts": {"a": [AS_IT_WAS]}}}
    states = [frame.data["facts"] for frame in frames if frame.event == "values"]
    assert {"a": [AS_IT_WAS]} in states
    results = [frame.data.get("result") for frame in frames if frame.event == "tasks"]
    assert {"facts": {"a": [AS_IT_WAS]}} in results


async def test_ten_thousand_at_once_are_told_as_they_were(
    person: httpx.AsyncClient,
) -> None:
    _, frames, end = await run(person, "burst", "custom")
    assert end["status"] == "success"
    assert [frame.data for frame in frames if frame.event == "custom"] == [
        {"number": number, "nested": [{"number": number}]} for number in range(BURST)
    ]


async def test_a_graph_that_never_lets_anything_be_stored_is_ended(
    person: httpx.AsyncClient,
) -> None:
    location, frames, end = await run(person, "flood", "custom")
    assert end["status"] == "error"
    (error,) = [frame.data for frame in frames if frame.event == "error"]
    assert error["error"] == "events_flooded"
    assert (await person.get(location)).json()["error"]["code"] == "events_flooded"
    told = [frame.data for frame in frames if frame.event == "custom"]
    assert told == list(range(len(told)))
    assert BURST <= len(told) < 3 * BURST
    _, _, end = await run(person, "node", "custom")
    assert end["status"] == "success", "the worker goes on"
