"""A thread whose old states and logs are gone: it loads, goes on, and says what is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from tenancy.database.upkeep import DueRow
from tenancy.principal import UserId
from tests.support.frames import follow, new_thread, read_run, start_run
from tests.support.service import RunningService

PRUNE = "SELECT dropped, done FROM tenant.prune_checkpoints($1, $2, $3, $4)"
DROP = "SELECT dropped, done FROM tenant.drop_log($1, $2, $3, $4)"


@pytest.fixture
async def superuser(narrow: RunningService) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(narrow.postgres.dsn("owner", narrow.database))
    try:
        yield connection
    finally:
        await connection.close()


class Talk:
    """A thread of an operator's graph that asks one question in each run, and its person."""

    def __init__(
        self, service: RunningService, superuser: asyncpg.Connection, client: httpx.AsyncClient
    ) -> None:
        self.service = service
        self.superuser = superuser
        self.client = client
        self.thread_id = ""

    async def ask(self, question: str, **fields: Any) -> str:
        """A run that waits for an answer; returns where it is."""
        location = await start_run(
            *(self.client, self.thread_id),
            assistant="asking",
            graph_input={"question": question},
            **fields,
        )
        await read_run(self.client, location)
        return location

    async def answer(self, answer: str) -> None:
        """Let the run that waits go on to its end."""
        body = {"assistant_id": "asking", "command": {"resume": answer}}
        resumed = await self.client.post(f"/threads/{self.thread_id}/runs", json=body)
        assert resumed.status_code == 200, resumed.text
        frames = await read_run(self.client, resumed.headers["content-location"])
        assert frames[-1].data["status"] == "success"

    async def state(self) -> Any:
        return (await self.client.get(f"/threads/{self.thread_id}/state")).json()

    async def history(self) -> Any:
        body = {"limit": 1000}
        return (await self.client.post(f"/threads/{self.thread_id}/history", json=body)).json()

    async def call(self, statement: str, row_id: str) -> int:
        """Have retention do its work, as long ago as it is."""
        user_id = await self.superuser.fetchval(
            "SELECT user_id FROM threads WHERE thread_id = $1", UUID(self.thread_id)
        )
        owner = DueRow(UserId(user_id), None, 0.0)
        dropped, done = 0, False
        while not done:
            ((rows, done),) = await self.service.web.services.database.call(
                owner, statement, UUID(row_id), 1e-6, 100
            )
            dropped += rows
        return dropped


@pytest.fixture
async def talk(narrow: RunningService, superuser: asyncpg.Connection) -> Talk:
    """Three questions were asked and answered."""
    talk = Talk(narrow, superuser, narrow.client(uuid4().hex))
    talk.thread_id = await new_thread(talk.client)
    for number in range(3):
        await talk.ask(f"question {number}")
        await talk.answer(f"answer {number}")
    return talk


class TestAPrunedThread:
    async def test_shows_its_last_turn_and_goes_on(self, talk: Talk) -> None:
        state, history = await talk.state(), await talk.history()
        assert await talk.call(PRUNE, talk.thread_id) > 0
        left = await talk.history()
        assert await talk.state() == state
        assert len(left) < len(history)
        # What the oldest one came from is gone, and it does not say otherwise.
        assert left[-1].pop("parent_checkpoint") is None
        assert left == [
            {name: each[name] for name in after} for each, after in zip(history, left, strict=False)
        ]
        await talk.ask("one more")
        assert (await talk.state())["values"] == {"question": "one more", "answer": "answer 2"}

    async def test_resumes_from_a_question_that_is_open_and_is_left_alone_meanwhile(
        self, talk: Talk
    ) -> None:
        await talk.call(PRUNE, talk.thread_id)
        await talk.ask("still there?")
        assert await talk.call(PRUNE, talk.thread_id) == 0
        assert (await talk.state())["interrupts"][0]["value"] == {"question": "still there?"}
        await talk.answer("yes")
        assert (await talk.state())["values"] == {"question": "still there?", "answer": "yes"}

    async def test_is_forked_from_what_is_left_and_from_nothing_else(self, talk: Talk) -> None:
        before = await talk.history()
        await talk.call(PRUNE, talk.thread_id)
        left = await talk.history()
        oldest, gone = left[-1]["checkpoint"], before[-1]["checkpoint"]
        body = {"assistant_id": "asking", "input": {"question": "?"}, "checkpoint": gone}
        refused = await talk.client.post(f"/threads/{talk.thread_id}/runs", json=body)
        assert (refused.status_code, refused.json()["code"]) == (404, "checkpoint_not_found")
        await talk.ask("from here", checkpoint_id=oldest["checkpoint_id"])
        values = (await talk.state())["values"]
        assert values == {"question": "from here", "answer": left[-1]["values"]["answer"]}

    async def test_takes_a_change_of_its_state(self, talk: Talk) -> None:
        await talk.call(PRUNE, talk.thread_id)
        changed = await talk.client.post(
            f"/threads/{talk.thread_id}/state",
            json={"values": {"answer": "another"}, "as_node": "ask"},
        )
        assert changed.status_code == 200, changed.text
        assert (await talk.state())["values"] == {"question": "question 2", "answer": "another"}


class TestARunWhoseLogIsGone:
    @pytest.mark.parametrize("mode", ["messages", "updates"])
    async def test_says_so_shows_the_present_state_and_ends(self, talk: Talk, mode: str) -> None:
        location = await talk.ask("logged?")
        await talk.answer("no more")
        last = max(frame.id or 0 for frame in await read_run(talk.client, location))
        assert await talk.call(DROP, location.rpartition("/")[2]) == last
        wanted = {"stream_mode": mode}
        async with talk.client.stream("GET", f"{location}/stream", params=wanted) as response:
            gap, state, end = [frame async for frame in follow(response)]
        told = {"asked_after": 0, "continues_after": last, "pruned_through": last}
        assert (gap.event, gap.data) == ("gap", told)
        assert state.data == (await talk.state())["values"]
        assert (end.event, end.data["status"]) == ("end", "success")

    async def test_ends_at_once_for_whoever_has_read_it_all(self, talk: Talk) -> None:
        location = await talk.ask("logged?")
        await talk.answer("no more")
        last = max(frame.id or 0 for frame in await read_run(talk.client, location))
        await talk.call(DROP, location.rpartition("/")[2])
        (end,) = await read_run(talk.client, location, last)
        assert end.event == "end"
        answer = await talk.client.get(f"{location}/join")
        assert answer.json() == {"question": "logged?", "answer": "no more"}
