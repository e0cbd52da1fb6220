"""Turns whose calls change the world, while workers die; and what came of each call.

The model is scripted by what the person says: it makes the calls that stand there, once.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any
from uuid import uuid4

import httpx

from app.tools.examples.tickets.desk import Desk
from tests.support.frames import read_run, start_run
from tests.support.model_server import Script, ToolCall
from tests.support.model_server.script import Body, last_user_text
from tests.support.tool_servers.tickets import TicketsFile

TOOLS = ("create", "update", "close")


@dataclass(frozen=True)
class Turn:
    """A turn of the model's that makes calls, each with a note that no other has."""

    server: str
    tools: tuple[str, ...]
    notes: tuple[str, ...]
    numbers: tuple[int, ...]
    """The open tickets that are changed."""

    @property
    def text(self) -> str:
        """What the person says, and the model goes by."""
        return json.dumps([self.server, self.tools, self.notes, self.numbers])

    def script(self) -> Script:
        """What the model says to it."""
        calls = [
            ToolCall(name=f"{self.server}__{tool}", arguments=_arguments(tool, note, number))
            for tool, note, number in zip(self.tools, self.notes, self.numbers, strict=True)
        ]
        return Script(tool_calls=tuple(calls))


def _arguments(tool: str, note: str, number: int) -> dict[str, object]:
    which: dict[str, object] = {"title": "A new one"} if tool == "create" else {"number": number}
    return {**which, "note": note}


def scripted(body: Body) -> Script:
    """The calls of a turn, and a word when they have results."""
    if _messages(body)[-1]["role"] != "user":
        return Script(text="Done.")
    server, tools, notes, numbers = json.loads(last_user_text(body))
    return Turn(server, tuple(tools), tuple(notes), tuple(numbers)).script()


@dataclass
class World:
    """A server that is told to do things, and what its people have seen of it."""

    server: str
    file: TicketsFile
    random: Random
    results: dict[Turn, list[dict[str, Any]]] = field(default_factory=dict)
    """Of each turn that has come to its end, those in the conversation."""
    approved: int = 0
    doubted: int = 0
    _turns: count[int] = field(default_factory=count)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    @property
    def notes(self) -> list[str]:
        """One of each call."""
        return [note for turn in self.results for note in turn.notes]

    def open_tickets(self, number: int) -> None:
        """Open so many, to be changed."""
        with Desk(self.file.path, ttl_seconds=1) as desk:
            for _ in range(number):
                desk.unguarded(lambda db: str(desk.create(db, "One of many", "")))

    async def keep_talking(self, client: httpx.AsyncClient, over: asyncio.Event) -> None:
        """Live through one turn after the other, until it is over."""
        while not over.is_set():
            turn = self._turn()
            self.results[turn] = await self.live_through(client, turn)

    def _turn(self) -> Turn:
        """Another one: the first of three calls, then of one and of three by turns."""
        is_whole = next(self._turns) % 2 == 0
        tools = TOOLS if is_whole else (self.random.choice(TOOLS),)
        numbers = tuple(next(self._numbers) for _ in tools)
        return Turn(self.server, tools, tuple(f"note {number}" for number in numbers), numbers)

    async def live_through(self, client: httpx.AsyncClient, turn: Turn) -> list[dict[str, Any]]:
        """Say it, approve what is asked, and return the results in the conversation at its end."""
        thread_id = str(uuid4())
        location = await start_run(client, thread_id, turn.text, if_not_exists="create")
        while (status := (await read_run(client, location))[-1].data["status"]) == "interrupted":
            await self._decide(client, location)
        assert status == "success", (turn, (await client.get(location)).json())
        state = (await client.get(f"/threads/{thread_id}/state")).json()
        messages = state["values"]["messages"]
        assert messages[-1]["content"] == "Done."
        return [each for each in messages if each["type"] == "tool"]

    async def _decide(self, client: httpx.AsyncClient, location: str) -> None:
        """Let each call be made, or made again where nobody knows what came of it."""
        run_id = location.rpartition("/")[2]
        for asked in (await client.get("/approvals", params={"run_id": run_id})).json():
            is_call = asked["kind"] == "call"
            assert is_call or asked["kind"] == "in_doubt", asked
            self.approved += is_call
            self.doubted += not is_call
            decision = {
                "decision": "approve" if is_call else "repeat",
                "arguments_sha256": asked["arguments_sha256"],
            }
            answer = await client.post(f"/approvals/{asked['approval_id']}", json=decision)
            assert answer.status_code == 200, answer.text

    def assert_once(self, heard: Sequence[Body]) -> None:
        """Each call of each turn had one effect, and the model was told its first result alone."""
        happened = Counter(note for _, note in self.file.changes() if note)
        assert happened == Counter(self.notes)
        first = self.file.results().values()
        in_conversations = [each["content"] for turn in self.results.values() for each in turn]
        assert Counter(in_conversations) == Counter(first)
        assert _told(self.server, heard) == set(first)


def _told(server: str, heard: Sequence[Body]) -> set[str]:
    """What the model was ever told of a server's results."""
    return {
        str(message["content"])
        for body in heard
        if last_user_text(body).startswith(f'["{server}"')
        for message in _messages(body)
        if message["role"] == "tool"
    }


def _messages(body: Body) -> list[dict[str, Any]]:
    messages = body["messages"]
    assert isinstance(messages, list)
    return messages
