"""Large states go into a log by reference: a reader gets, byte for byte, what was streamed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest

from app.runs.state_templates import WHOLE_BYTES, FrozenState
from app.worker.states import StateEvent
from tests.support.frames import Frame, new_thread, read_run, start_run
from tests.support.model_server import Script
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

MODES = ("values", "updates", "checkpoints", "tasks", "debug", "messages-tuple")
STATES = ("values", "checkpoints", "tasks", "debug")
SENTENCE = "The quick brown fox jumps over the lazy dog — naïve, 狐, \U0001f98a. "


@pytest.fixture(scope="module")
async def service(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    async with running_service(postgres) as running:
        yield running


@pytest.fixture
async def superuser(service: RunningService) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    yield connection
    await connection.close()


class Conversation:
    """One person's thread, and the runs on it."""

    def __init__(self, service: RunningService, person: str) -> None:
        self.service = service
        self.http: httpx.AsyncClient = service.client(person)
        self.thread_id = ""
        self.turns: list[str] = []

    async def say(self, text: str = SENTENCE * 8, **fields: Any) -> str:
        """Take a turn, to its end; return where its run is."""
        self.thread_id = self.thread_id or await new_thread(self.http)
        self.service.model.enqueue(Script(text=SENTENCE * 4))
        location = await start_run(self.http, self.thread_id, text, **{"modes": MODES, **fields})
        assert (await self.http.get(f"{location}/join")).status_code == 200
        self.turns.append(location)
        return location


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """Every state as it was when it was emitted, in order."""
    seen: list[tuple[str, bytes]] = []
    made = StateEvent.__init__

    def watched(event: StateEvent, name: str, frozen: FrozenState, *about: Any) -> None:
        seen.append((name, frozen.whole))
        made(event, name, frozen, *about)

    monkeypatch.setattr(StateEvent, "__init__", watched)
    return seen


def large_states(frames: list[Frame]) -> list[tuple[str, bytes]]:
    """Names and data of the frames that tell more than an event stores whole."""
    told = [(frame.event, frame.raw.split(b"\n")[1].removeprefix(b"data: ")) for frame in frames]
    return [(name, data) for name, data in told if name in STATES and len(data) > WHOLE_BYTES]


async def references(superuser: asyncpg.Connection, location: str) -> list[asyncpg.Record]:
    """The events of a run that leave out what a checkpoint has."""
    rows: list[asyncpg.Record] = await superuser.fetch(
        "SELECT seq, event, size FROM run_events WHERE run_id = $1::uuid"
        " AND checkpoint_id IS NOT NULL ORDER BY seq",
        location.rpartition("/")[2],
    )
    return rows


class TestALongConversation:
    async def test_reads_as_it_was_streamed_wherever_and_whenever_it_is_read(
        self,
        service: RunningService,
        superuser: asyncpg.Connection,
        emitted: list[tuple[str, bytes]],
    ) -> None:
        talk = Conversation(service, "long")
        for _ in range(4):
            await talk.say()
        emitted.clear()
        service.model.enqueue(Script(text=SENTENCE * 4, decode_tokens_per_second=400))
        location = await start_run(talk.http, talk.thread_id, modes=MODES)
        live = await read_run(talk.http, location)
        assert live[-1].data["status"] == "success"

        told = large_states(live)
        assert told == emitted
        assert {name for name, _ in told} == set(STATES)
        stored = await references(superuser, location)
        assert len(stored) == len(told)
        assert max(row["size"] for row in stored) < WHOLE_BYTES

        elsewhere = service.client("long", url=(await service.start_web()).url)
        assert await read_run(elsewhere, location) == live
        middle = next(frame.id for frame in live if frame.event == "messages")
        assert await read_run(elsewhere, location, middle) == live[middle:]
        assert await read_run(talk.http, location, "-1") == live

        await talk.say("And afterwards?")  # which writes to the checkpoint that this run has left
        assert await read_run(elsewhere, location) == live

    async def test_is_answered_by_wait_and_join_with_the_whole_of_it(
        self, service: RunningService
    ) -> None:
        talk = Conversation(service, "waiting")
        for _ in range(3):
            await talk.say(modes=("values",))
        joined = (await talk.http.get(f"{talk.turns[-1]}/join")).json()
        state = (await talk.http.get(f"/threads/{talk.thread_id}/state")).json()
        assert len(joined["messages"]) == 6
        assert joined == state["values"]

    async def test_makes_its_log_grow_by_the_same_with_each_turn(
        self, service: RunningService, superuser: asyncpg.Connection
    ) -> None:
        talk = Conversation(service, "growing")
        for _ in range(24):
            await talk.say()
        sizes = await superuser.fetch(
            # In how many pieces an answer is stored depends on how fast it comes.
            "SELECT sum(e.size)::int AS log FROM runs r JOIN run_events e USING (user_id, run_id)"
            " WHERE r.thread_id = $1::uuid AND e.event <> 'messages'"
            " GROUP BY r.run_id, r.created_at ORDER BY r.created_at",
            talk.thread_id,
        )
        logs = [row["log"] for row in sizes]
        early, late = logs[4:8], logs[-4:]
        assert sum(late) < 1.05 * sum(early)
        values = await read_run(talk.http, talk.turns[-1])
        assert sum(len(data) for _, data in large_states(values)) > 10 * logs[-1]


class TestAStateThatIsNotThereAnyMore:
    async def test_is_told_by_a_gap_and_the_present_state(
        self, service: RunningService, superuser: asyncpg.Connection
    ) -> None:
        talk = Conversation(service, "gone")
        for _ in range(3):
            await talk.say(modes=("values",))
        location = talk.turns[-1]
        whole = await read_run(talk.http, location)
        gone = await references(superuser, location)
        await superuser.execute(
            "DELETE FROM checkpoints WHERE thread_id = $1::uuid AND checkpoint_id <>"
            " (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = $1::uuid)",
            talk.thread_id,
        )
        present = (await talk.http.get(f"/threads/{talk.thread_id}/state")).json()["values"]

        frames = await read_run(talk.http, location)
        gaps = [frame for frame in frames if frame.event == "gap"]
        assert [gap.id for gap in gaps][:1] == [row["seq"] for row in gone][:1]
        assert all(gap.data["continues_after"] == gap.id for gap in gaps)
        state = frames[frames.index(gaps[0]) + 1]
        assert (state.event, state.id, state.data) == ("values", None, present)
        ids = [frame.id for frame in frames if frame.id is not None]
        assert ids == [frame.id for frame in whole if frame.id is not None]
        assert frames[-1] == whole[-1]


class TestTheFirstWord:
    async def test_does_not_wait_for_anything_behind_a_large_state(
        self, service: RunningService
    ) -> None:
        talk = Conversation(service, "first word")
        for _ in range(4):
            await talk.say()
        service.model.enqueue(Script(tokens=("one", "two"), stall_at=1))
        stalls = sum(each.stalled_at is not None for each in service.model.requests)
        location = await start_run(talk.http, talk.thread_id, modes=("values", "messages-tuple"))
        reading = asyncio.create_task(read_run(talk.http, location))
        request = await service.model.wait_for_stall(stalls + 1)
        async with asyncio.timeout(30), talk.http.stream("GET", f"{location}/stream") as response:
            seen = b""
            async for piece in response.aiter_raw():
                seen += piece
                if b"event: messages\n" in seen:
                    break
        assert seen.index(b"event: values\n") < seen.index(b"event: messages\n")
        service.model.release(request)
        assert (await reading)[-1].data["status"] == "success"
