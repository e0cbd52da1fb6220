"""What one run's agent is equipped with: its user's servers, the tools that come with the service.

Servers are bound by what they listed before: nobody connects to them until a tool is called.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from app.agent.equipment import Equipment
from app.connections.leasing import LettingGo
from app.memory.run import memory_for_run
from app.runs.permissions import ThreadPermissions
from app.tools.approval.word import PersonsWord
from app.tools.builtin import builtin_tools
from app.tools.builtin.visits import Visits
from app.tools.calls import AgentTool
from app.tools.ledger import Ledger
from app.tools.mcp.calling import ServerCalls
from app.tools.mcp.tools import RecordedCalls, bind_tools
from app.tools.servers import Unavailable
from app.worker.tool_listings import Listings, Relisting
from app.worker.tool_room import within_room

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from app.agent.equipment import Recall
    from app.agent.speakers import Speaker
    from app.connections.standing import UserServer
    from app.worker.tool_services import ToolServices
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun
    from tenancy.scheduler.limits import Limits

CALLS_AT_ONCE = 8
"""Of one run's tools."""
TOOL_SHARE = 2
"""Descriptions of tools may take one part in so many of what the window has for the prompt."""


class Outfitter:
    """Puts the equipment of runs together."""

    def __init__(self, database: TenantDatabase, tools: ToolServices, limits: Limits) -> None:
        self._database = database
        self._tools = tools
        self._limits = limits
        self._listings = Listings(tools)

    async def equip(
        self,
        run: ClaimedRun,
        thread_id: UUID,
        speaker: Speaker,
        looked_at: Collection[str] = (),
        *,
        sees_images: bool = False,
    ) -> Equipment:
        """What this run's agent is given. Whose it is comes from the run's row alone.

        The ``speaker`` is the model that it has chosen, and its window says how many tools there is
        room for. The servers that are to be ``looked_at`` are those on whose calls their person has
        decided.

        Raises:
            DatabaseUnavailable: Postgres is away.
        """
        ledger = Ledger(self._database, run, thread_id)
        tools, recall = self._own_tools(run, ledger)
        base = Equipment(
            tools,
            memory=recall,
            speaker=speaker,
            sees_images=sees_images,
            slots=asyncio.Semaphore(CALLS_AT_ONCE),
            permissions=ThreadPermissions(self._database, run, thread_id),
        )
        if not self._tools.has_servers:
            return base
        servers = await self._tools.connections.of(run)
        listings = await self._listings.of(run, servers, looked_at)
        calls = ServerCalls(
            run,
            Relisting(self._tools, run, servers, listings),
            LettingGo(self._tools.credentials, self._tools.pool),
            ledger,
            self._tools.late,
        )
        found = [(each, listings[each.server.name]) for each in servers]
        missing = [tools_of for _, tools_of in found if isinstance(tools_of, Unavailable)]
        offered = (
            (each.server.name, partial(bind_tools, each.server, [listed], calls, word))
            for each, tools_of in found
            if not isinstance(tools_of, Unavailable)
            for word in (self._word(run, each),)
            for listed in tools_of
        )
        # Schemas of any servers are work for the processor: others' runs go on meanwhile.
        tools, crowded_out = await asyncio.to_thread(
            within_room, tools, offered, speaker.prompt_tokens // TOOL_SHARE
        )
        missing += crowded_out
        return replace(base, tools=tools, missing=missing, earlier=RecordedCalls(calls))

    def _own_tools(
        self, run: ClaimedRun, ledger: Ledger
    ) -> tuple[dict[str, AgentTool], Recall | None]:
        """The tools that come with the service."""
        names = self._tools.builtin
        visits = Visits(self._tools.fetch_asks, ledger)
        own = builtin_tools(names, visitor=run.user_id, visits=visits)
        tools = {tool.name: tool for tool in own}
        if "memory" not in names:
            return tools, None
        memory = memory_for_run(self._database, run, self._limits, self._tools.embedder)
        return {**tools, **memory.tools}, memory.recall

    def _word(self, run: ClaimedRun, each: UserServer) -> PersonsWord:
        """What the run's user has said of a server, which is read anew where it has changed."""
        return PersonsWord(each.word, partial(self._tools.connections.word, run, each.server))
