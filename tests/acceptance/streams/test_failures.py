"""Answers that fail: the run says why, what came is kept, and the thread can be gone on with."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import asyncpg
import httpx
import pytest

from tests.acceptance.conftest import Running
from tests.support.frames import Frame, new_thread, read_run, start_run
from tests.support.model_server import Script

ANSWER = "one two three four five six"
PART = "one two three"
PATIENCE = 30.0
_LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Case:
    """What the model does, and what the person is told."""

    script: Script | None
    """None: the server lacks the model."""
    code: str
    message: str


SLOWLY = 5.0
"""A word has been passed on before the next one fails: until then the call is made again."""
IN_THE_MIDDLE = {
    "cut": Case(
        Script(text=ANSWER, decode_tokens_per_second=SLOWLY, cut_at=3),
        "model_stream_cut",
        "The connection to the model broke off in the middle of the answer. Try again.",
    ),
    "reset": Case(
        Script(text=ANSWER, decode_tokens_per_second=SLOWLY, reset_at=3),
        "model_stream_cut",
        "The connection to the model broke off in the middle of the answer. Try again.",
    ),
    "malformed": Case(
        Script(text=ANSWER, decode_tokens_per_second=SLOWLY, malformed_at=3),
        "model_malformed",
        "The model's answer could not be understood. Try again.",
    ),
    "error line": Case(
        Script(
            text=ANSWER,
            decode_tokens_per_second=SLOWLY,
            error_at=3,
            error="CUDA error: out of memory",
        ),
        "model_failed",
        "The model failed while it was answering. Try again.",
    ),
}
BEFORE_THE_FIRST_WORD = {
    "missing": Case(
        None,
        "model_missing",
        "The model is not installed on the model server.",
    ),
    "failing": Case(
        Script(status=500), "model_failed", "The model failed while it was answering. Try again."
    ),
}


@dataclass
class Failed:
    """A thread whose one run has failed."""

    client: httpx.AsyncClient
    thread_id: str
    location: str
    frames: list[Frame]

    async def said(self) -> list[tuple[str, str]]:
        state = (await self.client.get(f"/threads/{self.thread_id}/state")).json()
        return [(each["type"], each["content"]) for each in state["values"]["messages"]]

    async def assert_failed(self, code: str, message: str) -> None:
        run = (await self.client.get(self.location)).json()
        assert (run["status"], run["state"]) == ("error", "error")
        assert run["error"] == {"code": code, "message": message}
        thread = (await self.client.get(f"/threads/{self.thread_id}")).json()
        assert thread["status"] == "error"
        told, end = self.frames[-2:]
        assert (told.event, told.data) == ("error", {"error": code, "message": message})
        assert (end.event, end.data["status"]) == ("end", "error")
        joined = (await self.client.get(f"{self.location}/join")).json()
        assert joined == {"__error__": {"error": code, "message": message}}

    async def assert_goes_on(self, before: list[tuple[str, str]]) -> None:
        """The next message on the thread is answered, and what was said before stays."""
        location = await start_run(self.client, self.thread_id, "And now?")
        frames = await read_run(self.client, location)
        assert frames[-1].data["status"] == "success"
        assert await self.said() == [*before, ("human", "And now?"), ("ai", "You said: And now?")]
        thread = (await self.client.get(f"/threads/{self.thread_id}")).json()
        assert thread["status"] == "idle"


async def failed_run(running: Running, person: str) -> Failed:
    client = running.deployment.http(person, running.first)
    thread_id = await new_thread(client)
    location = await start_run(client, thread_id, "Count.")
    return Failed(client, thread_id, location, await read_run(client, location))


async def pool_is_open(running: Running) -> None:
    """A server that lacks the model, or is away, is left out until a probe finds it there."""
    async with running.deployment.superuser() as connection, asyncio.timeout(PATIENCE):
        while await connection.fetchval("SELECT state FROM pools") != "open":  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)


@contextmanager
def the_model_lacking(running: Running) -> Iterator[None]:
    """Without the model, also for whoever looks for it: the call is not made again meanwhile."""
    plan = running.deployment.model._plan
    plan.models, had = (), plan.models
    try:
        yield
    finally:
        plan.models = had


class TestAnAnswerThatBreaksOff:
    @pytest.mark.parametrize("name", IN_THE_MIDDLE)
    async def test_is_kept_as_far_as_it_came(self, running: Running, name: str) -> None:
        case = IN_THE_MIDDLE[name]
        assert case.script is not None
        running.deployment.model.enqueue(case.script)
        failed = await failed_run(running, f"broken off {name}")
        await failed.assert_failed(case.code, case.message)
        chunks = [frame.data[0]["content"] for frame in failed.frames if frame.event == "messages"]
        assert "".join(chunks) == PART
        so_far = [("human", "Count."), ("ai", PART)]
        assert await failed.said() == so_far
        await failed.assert_goes_on(so_far)


class TestAnAnswerThatNeverBegins:
    @pytest.mark.parametrize("name", BEFORE_THE_FIRST_WORD)
    async def test_leaves_the_question(self, running: Running, name: str) -> None:
        case = BEFORE_THE_FIRST_WORD[name]
        with the_model_lacking(running) if case.script is None else nullcontext():
            running.deployment.model.enqueue(*filter(None, [case.script]))
            failed = await failed_run(running, f"never begun {name}")
        await failed.assert_failed(case.code, case.message)
        assert await failed.said() == [("human", "Count.")]
        await pool_is_open(running)
        await failed.assert_goes_on([("human", "Count.")])

    async def test_because_no_model_server_is_there(self, running: Running) -> None:
        deployment = running.deployment
        await deployment.model.stop()
        try:
            failed = await failed_run(running, "nobody there")
        finally:
            await deployment.restart_model()
        await failed.assert_failed(
            "ollama_unreachable", "The model server cannot be reached. Try again in a moment."
        )
        assert await failed.said() == [("human", "Count.")]
        await pool_is_open(running)
        await failed.assert_goes_on([("human", "Count.")])


class TestAGraphThatRaises:
    NUMBERS = (31415, 92653, 58979)
    SECRET = "secret-31415-92653-58979"

    async def test_says_that_it_failed_and_its_words_are_nowhere(self, running: Running) -> None:
        deployment = running.deployment
        client = deployment.http("raising", running.first)
        thread_id = await new_thread(client)
        location = await start_run(
            client,
            thread_id,
            assistant="raising",
            graph_input={"numbers": list(self.NUMBERS)},
            modes=("values", "updates", "tasks", "checkpoints", "debug"),
        )
        frames = await read_run(client, location)
        assert frames[-1].data["status"] == "error"
        told = frames[-2].data
        assert told == {"error": "graph_failed", "message": "The assistant failed. Try again."}
        answers = [
            await client.get(location),
            await client.get(f"{location}/join"),
            await client.get(f"/threads/{thread_id}"),
            await client.get(f"/threads/{thread_id}/state"),
            await client.post(f"/threads/{thread_id}/history", json={}),
        ]
        assert {answer.status_code for answer in answers} == {200}
        streamed = b"".join(frame.raw for frame in frames)
        for answer in answers:
            streamed += answer.content
        assert self.SECRET.encode() not in streamed
        assert self.SECRET not in deployment.all_logs()
        async with deployment.superuser() as connection:
            stored = await everything_in(connection)
        assert thread_id in stored
        assert self.SECRET not in stored


async def everything_in(connection: asyncpg.Connection) -> str:
    """The content of every table of the database, bytes read as text."""
    tables = await connection.fetch(
        "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) AS name FROM pg_tables"
        " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
    )
    rows = [
        row for table in tables for row in await connection.fetch(f"SELECT * FROM {table['name']}")
    ]
    return "\n".join(_readable(value) for row in rows for value in row.values())


def _readable(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
