"""The traps between a graph that works and a run that survives, each walked into once.

What is not here is tried where it belongs: the saver alone in ``tests/integration/tenancy``, the
agent's turns in ``tests/integration/agent``, real processes that die in ``tests/crash``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest

from tenancy.database import retry
from tenancy.database.engine import DatabaseUnavailable
from tenancy.database.tenant import TenantDatabase
from tests.integration.worker import traps
from tests.integration.worker.traps import Seen
from tests.support.frames import Frame, new_thread, read_run, start_run
from tests.support.lost_writes import lose_a_write
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

PATIENCE = 30.0
CANARY = "a canary in the context"
EVERY_MODE = ("values", "updates", "tasks", "checkpoints", "debug", "custom", "messages-tuple")
CHECKPOINT_WRITES = 4
"""How often a graph of three steps stores something that is no part of its outcome."""


@pytest.fixture(scope="module")
async def service(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    """With heartbeats so rare that nobody but the run itself notices what becomes of it."""
    graphs = traps.declare(tmp_path_factory.mktemp("graphs"))
    async with running_service(
        postgres, graphs=graphs, heartbeat_seconds=100, lease_seconds=300
    ) as running:
        yield running


@pytest.fixture
def seen() -> Seen:
    return traps.look_anew()


@pytest.fixture
async def superuser(service: RunningService) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    try:
        yield connection
    finally:
        await connection.close()


async def begin(
    client: httpx.AsyncClient, graph: str, graph_input: dict[str, Any], **fields: Any
) -> tuple[str, str]:
    thread_id = await new_thread(client)
    location = await start_run(
        client, thread_id, assistant=graph, graph_input=graph_input, **fields
    )
    return thread_id, location


async def values_of(client: httpx.AsyncClient, thread_id: str) -> Any:
    return (await client.get(f"/threads/{thread_id}/state")).json()["values"]


def status_of(frames: list[Frame]) -> str:
    assert frames[-1].event == "end"
    return str(frames[-1].data["status"])


class TestAWriteOfTheSaversThatFails:
    """LangGraph does not wait for a task's writes, and would let its siblings go on."""

    async def test_because_the_fence_is_lost_ends_the_graph_at_once(
        self, service: RunningService, seen: Seen, superuser: asyncpg.Connection
    ) -> None:
        client = service.client("lost")
        _, location = await begin(client, "pair", {"done": ["asked"]})
        run_id = location.rpartition("/")[2]
        await seen.begun.wait()
        await superuser.execute("UPDATE runs SET fence = fence + 1 WHERE run_id = $1", run_id)
        before = await superuser.fetchval("SELECT count(*) FROM checkpoint_writes")
        seen.go.set()
        async with asyncio.timeout(PATIENCE):
            await seen.cut_off.wait()
        assert await superuser.fetchval("SELECT count(*) FROM checkpoint_writes") == before
        assert (await client.get(location)).json()["state"] == "running"

    async def test_because_the_database_stays_away_ends_the_graph_and_it_is_tried_again(
        self, service: RunningService, seen: Seen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client = service.client("away")
        thread_id, location = await begin(client, "pair", {"done": ["asked"]})
        await seen.begun.wait()
        lose_a_write(monkeypatch, error=DatabaseUnavailable())
        seen.go.set()
        async with asyncio.timeout(PATIENCE):
            await seen.cut_off.wait()
        seen.go_slowly.set()
        assert status_of(await read_run(client, location)) == "success"
        assert (await client.get(location)).json()["attempt"] == 2
        assert sorted((await values_of(client, thread_id))["done"]) == ["asked", "quick", "slow"]

    @pytest.mark.parametrize("is_committed", [False, True], ids=["write", "answer"])
    async def test_for_a_moment_is_made_again_and_nobody_notices(
        self,
        service: RunningService,
        seen: Seen,
        monkeypatch: pytest.MonkeyPatch,
        is_committed: bool,
    ) -> None:
        real = TenantDatabase.call
        failures: list[str] = []

        async def call(self: TenantDatabase, owner: Any, function: str, *args: Any) -> Any:
            if "write_checkpoints" not in function or len(failures) == CHECKPOINT_WRITES:
                return await real(self, owner, function, *args)
            if is_committed:
                await real(self, owner, function, *args)
            failures.append(function)
            raise DatabaseUnavailable

        monkeypatch.setattr(TenantDatabase, "call", call)
        monkeypatch.setattr(retry, "RETRY_SECONDS", 60.0)  # a moment of a busy machine's, too
        client = service.client("moment")
        thread_id, location = await begin(client, "three_steps", {"done": ["asked"]})
        assert status_of(await read_run(client, location)) == "success"
        assert failures
        assert (await client.get(location)).json()["attempt"] == 1
        assert seen.executed == ["one", "two", "three"]
        assert (await values_of(client, thread_id))["done"] == ["asked", "one", "two", "three"]


class TestARunThatIsTakenUpAgain:
    @pytest.mark.parametrize("at", range(CHECKPOINT_WRITES))
    async def test_has_its_input_once_on_a_thread_that_has_had_others(
        self, service: RunningService, seen: Seen, monkeypatch: pytest.MonkeyPatch, at: int
    ) -> None:
        client = service.client("once")
        thread_id, location = await begin(client, "three_steps", {"done": ["first"]})
        await read_run(client, location)
        lose_a_write(monkeypatch, at)
        location = await start_run(
            client, thread_id, assistant="three_steps", graph_input={"done": ["second"]}
        )
        assert status_of(await read_run(client, location)) == "success"
        assert (await client.get(location)).json()["attempt"] == 2
        steps = ["one", "two", "three"]
        expected = ["first", *steps, "second", *steps]
        assert (await values_of(client, thread_id))["done"] == expected

    async def test_has_only_the_steps_that_are_left(
        self, service: RunningService, seen: Seen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        limit = 2 * traps.PAUSE_AT
        client = service.client("budget")
        thread_id, location = await begin(
            client, "counting", {"n": 0}, config={"recursion_limit": limit}
        )
        await seen.begun.wait()
        lose_a_write(monkeypatch)
        seen.go.set()
        frames = await read_run(client, location)
        assert (frames[-2].event, frames[-2].data["error"]) == ("error", "recursion_limit")
        run = (await client.get(location)).json()
        assert (run["state"], run["attempt"]) == ("error", 2)
        assert (await values_of(client, thread_id))["n"] == limit
        # A step whose result was lost may be executed twice; it counts once.
        assert list(dict.fromkeys(seen.executed)) == [str(n) for n in range(1, limit + 1)]

    async def test_has_its_context_again_and_leaves_it_in_no_checkpoint_and_no_event(
        self,
        service: RunningService,
        seen: Seen,
        superuser: asyncpg.Connection,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        client = service.client("context")
        context = {"word": CANARY}
        _, location = await begin(
            client,
            "with_context",
            {"done": ["asked"]},
            context=context,
            modes=EVERY_MODE,
            stream_subgraphs=True,
        )
        await seen.begun.wait()
        lose_a_write(monkeypatch)
        seen.go.set()
        frames = await read_run(client, location)
        assert status_of(frames) == "success"
        assert seen.contexts == [context, context]
        assert not [frame for frame in frames if CANARY.encode() in frame.raw]
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "run_events"):
            rows = await superuser.fetch(f"SELECT * FROM {table}")
            assert rows
            stored = [
                value if isinstance(value, bytes) else str(value).encode()
                for row in rows
                for value in row.values()
            ]
            assert not [value for value in stored if CANARY.encode() in value], table


class TestAToolCall:
    async def test_begins_only_once_the_message_that_makes_it_is_stored(
        self, service: RunningService, seen: Seen
    ) -> None:
        client = service.client("durable")
        asked = {"messages": [{"role": "user", "content": "Call it."}]}
        # Clients may ask for less; they get the same.
        thread_id, location = await begin(client, "calling", asked, durability="async")
        await seen.begun.wait()
        state = (await client.get(f"/threads/{thread_id}/state")).json()
        assert state["next"] == ["tools"]
        assert state["values"]["messages"][-1]["tool_calls"][0]["id"] == "call-1"
        seen.go.set()
        assert status_of(await read_run(client, location)) == "success"


class TestAnInterruptBesideFinishedSiblings:
    @pytest.mark.usefixtures("seen")
    async def test_is_in_the_last_values_and_they_hold_what_the_siblings_did(
        self, service: RunningService
    ) -> None:
        client = service.client("siblings")
        _, location = await begin(client, "siblings", {"done": ["asked"]})
        frames = await read_run(client, location)
        assert status_of(frames) == "interrupted"
        last = [frame.data for frame in frames if frame.event == "values"][-1]
        assert last["done"] == ["asked", "sibling"]
        assert [each["value"] for each in last["__interrupt__"]] == ["May I?"]


class TestAnAnswerOfAGraphThatReturnsWhatItStreamed:
    async def test_is_told_in_pieces_and_never_again_as_a_whole(
        self, service: RunningService
    ) -> None:
        client = service.client("pieces")
        asked = {"messages": [{"role": "user", "content": "Count."}]}
        _, location = await begin(client, "speaking", asked, modes=("messages-tuple",))
        frames = await read_run(client, location)
        chunks = [frame.data[0] for frame in frames if frame.event == "messages"]
        assert "".join(chunk["content"] for chunk in chunks) == traps.ANSWER
        assert len({chunk["id"] for chunk in chunks}) == 1
