"""Reads what a message points at, when its turn begins: as its author may, and for the model alone.

What is read is not stored: another attempt of the run reads again what may be otherwise by then.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from app.agent.mentioned import Quoted
from app.connections.reading import ReadingFailed
from app.logging import place_of
from app.mentions.checking import titles_of, uuid_of
from app.mentions.offered import OWN_SERVER
from app.mentions.refs import parse_ref
from tenancy.checkpoints.memories import MOST_CHARACTERS
from tenancy.database.engine import DatabaseUnavailable
from tenancy.database.retry import while_database_is_away
from tenancy.errors import InvalidInput, LeaseLost, UserUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from app.connections.reading import ConnectionReader
    from app.connections.standing import UserConnections
    from app.mentions.refs import Ref
    from app.tools.calls import AgentTool
    from app.worker.conversations import Conversations
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun

log = structlog.get_logger(__name__)

SECONDS = 10.0
"""How long a turn waits for all that its message points at."""
AT_ONCE = 4
_FIND = "SELECT * FROM tenant.find_mentioned($1, $2, $3, $4)"
_STORED = ("thread", "memory")
_ENDS_THE_RUN = (LeaseLost, UserUnavailable, DatabaseUnavailable)

GONE = "It is not there any more."
HERE = "It is this conversation."
LATE = "It could not be read in time."
FAILED = "It could not be read."
NO_TOOL = "This tool cannot be used just now."

Stored = dict[tuple[str, str], str | None]
"""What conversations are called, and what memories say: by kind and id."""


@dataclass(frozen=True, slots=True)
class MentionReader:
    """One worker's."""

    database: TenantDatabase
    conversations: Conversations
    connections: UserConnections
    servers: ConnectionReader
    seconds: float = SECONDS

    def of_run(
        self, run: ClaimedRun, thread_id: UUID, tools: Mapping[str, AgentTool]
    ) -> TurnMentions:
        """For one attempt at a run of a thread, whose agent has these tools."""
        return TurnMentions(self, run, thread_id, tools)


class TurnMentions:
    """Reads for one attempt: once for what was said, however often its model is called."""

    def __init__(
        self,
        services: MentionReader,
        run: ClaimedRun,
        thread_id: UUID,
        tools: Mapping[str, AgentTool],
    ) -> None:
        self._services = services
        self._run = run
        self._thread_id = thread_id
        self._tools = tools
        self._refs: list[str] = []
        self._things: list[Quoted] = []
        self._lock = asyncio.Lock()

    async def read(self, refs: Sequence[str]) -> Sequence[Quoted]:
        """What there is to say of each thing, in their order, each once.

        What cannot be read says so; a model says nothing.

        Raises:
            LeaseLost: the run is another worker's.
            UserUnavailable: nothing is done for its person any more, or for now.
            DatabaseUnavailable: Postgres stayed away.
        """
        async with self._lock:
            if [*refs] != self._refs:
                self._things = await self._look(_parsed(refs))
                self._refs = [*refs]
        return self._things

    async def _look(self, refs: Sequence[Ref]) -> list[Quoted]:
        stored = await self._stored(refs)
        titles = await self._titles(refs)
        room = asyncio.Semaphore(AT_ONCE)
        ends_at = asyncio.get_running_loop().time() + self._services.seconds

        async def one(ref: Ref) -> Quoted:
            try:
                async with asyncio.timeout_at(ends_at), room:
                    return await self._thing(ref, stored, titles)
            except ReadingFailed as error:
                note = f"It could not be read ({error.reason})."
            except TimeoutError:
                note = LATE
            except _ENDS_THE_RUN:
                raise
            except Exception as error:  # noqa: BLE001 - of one thing: the turn goes on without it
                log.warning(
                    "a mention was not read",
                    kind=ref.kind,
                    error=type(error).__name__,
                    at=place_of(error),
                )
                note = FAILED
            return Quoted(ref.kind, _title(ref, stored, titles), note=note)

        # All come to their end, also where one raises.
        found = await asyncio.gather(*map(one, refs), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each
        return [each for each in found if isinstance(each, Quoted)]

    async def _thing(self, ref: Ref, stored: Stored, titles: Mapping[Ref, str]) -> Quoted:
        if ref.kind == "tool":
            return self._tool(ref)
        title = _title(ref, stored, titles)
        if ref.kind in _STORED and (ref.kind, ref.name) not in stored:
            return Quoted(ref.kind, title, note=GONE)
        if ref.kind == "thread" and ref.name == str(self._thread_id):
            return Quoted(ref.kind, title, note=HERE)
        text = await self._text(ref, stored)
        return Quoted(ref.kind, title, text, keeps_end=ref.kind == "thread")

    async def _text(self, ref: Ref, stored: Stored) -> str | None:
        services, server = self._services, ref.server or ""
        match ref.kind:
            case "thread":
                return await services.conversations.newest(self._run, ref.name)
            case "resource":
                return await services.servers.resource(self._run, server, ref.name)
            case "prompt":
                return await services.servers.prompt(self._run, server, ref.name)
            case _:
                return stored[ref.kind, ref.name]

    def _tool(self, ref: Ref) -> Quoted:
        """A word to the model: which of its tools the person means."""
        server = None if ref.server == OWN_SERVER else ref.server
        for tool in self._tools.values():
            if (tool.server, tool.own_name or tool.name) == (server, ref.name):
                return Quoted("tool", ref.name, note=f"The person means your tool `{tool.name}`.")
        return Quoted("tool", ref.name, note=NO_TOOL)

    async def _stored(self, refs: Sequence[Ref]) -> Stored:
        ids = {
            kind: [id_ for ref in refs if ref.kind == kind and (id_ := uuid_of(ref.name))]
            for kind in _STORED
        }
        if not any(ids.values()):
            return {}
        rows = await while_database_is_away(
            self._services.database.call,
            self._run,
            _FIND,
            ids["thread"],
            ids["memory"],
            MOST_CHARACTERS,
        )
        return {(row["kind"], str(row["id"])): row["said"] for row in rows}

    async def _titles(self, refs: Sequence[Ref]) -> dict[Ref, str]:
        """What resources and prompts are called: messages name them so."""
        named = {ref.server for ref in refs if ref.kind in ("resource", "prompt")}
        if not named:
            return {}
        servers = await while_database_is_away(self._services.connections.of, self._run)
        return {
            ref: title
            for each in servers
            if each.server.name in named
            for ref, title in titles_of(each).items()
        }


def _parsed(refs: Sequence[str]) -> list[Ref]:
    """Those that this version knows, each once, but models: the run speaks with one already."""
    found: dict[Ref, None] = {}
    for each in refs:
        try:
            found[parse_ref(each)] = None
        except InvalidInput:
            continue
    return [ref for ref in found if ref.kind != "model"]


def _title(ref: Ref, stored: Stored, titles: Mapping[Ref, str]) -> str | None:
    if ref.kind == "thread":
        return stored.get((ref.kind, ref.name))
    return None if ref.kind == "memory" else titles.get(ref, ref.name)
