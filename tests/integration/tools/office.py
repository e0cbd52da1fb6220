"""A person, a run of theirs, and workers that call tools for it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from langchain_core.messages import ToolCall, ToolMessage

from app.agent.equipment import Equipment
from app.agent.speakers import Speaker, Speakers
from app.connections.changing import ConnectionChanges
from app.connections.oauth.oauth import OAuth
from app.connections.opening import open_vault, public_address
from app.settings import Settings
from app.sharing import default_limits
from app.stopping import RunStop
from app.tools.calls import run_call
from app.tools.site import CallSite, site_of_call
from app.worker.equip import Outfitter
from app.worker.tool_services import ToolServices, open_tools
from tenancy.database.signals import Announcer
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun
from tests.support.tenancy import TestDatabase

VAULT_KEYS = f"test:{base64.b64encode(bytes(32)).decode()}"


@dataclass
class Worker:
    """What one worker process has."""

    services: ToolServices
    outfitter: Outfitter
    speaker: Speaker
    run: ClaimedRun
    thread: UUID

    async def equip(self) -> Equipment:
        """Begin an attempt."""
        return await self.outfitter.equip(self.run, self.thread, self.speaker)

    async def call(self, name: str, call_id: str = "call", **arguments: Any) -> ToolMessage:
        """Begin an attempt, and make a call in it."""
        return await make(await self.equip(), name, arguments, call_id)


@dataclass
class Office:
    """One database, one run, and as many workers as a test needs. No signal reaches anybody."""

    database: TestDatabase
    tenants: TenantDatabase
    run: ClaimedRun
    thread: UUID
    folder: Path
    stack: AsyncExitStack
    announcer: Announcer = field(init=False)
    settings: Settings = field(init=False)
    changes: ConnectionChanges = field(init=False)

    def __post_init__(self) -> None:
        self.announcer = Announcer(self.database.dsn("service"))

    async def open(self, servers: Mapping[str, Any], **settings: Any) -> Worker:
        """The first worker, with these entries of a catalogue."""
        catalogue = self.folder / "mcp.json"
        catalogue.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        self.settings = Settings.model_validate(
            {
                "mcp_config": [catalogue],
                "mcp_folder": self.folder / "mcp",
                "mcp_sandbox": "none",
                "builtin_tools": [],
                "vault_keys": VAULT_KEYS,
                **settings,
            }
        )
        worker = await self.another_worker()
        self.changes = ConnectionChanges(
            worker.services.connections,
            open_vault(self.settings, self.tenants),
            self.announcer,
            OAuth(public_address(self.settings)),
        )
        return worker

    async def another_worker(self) -> Worker:
        """One more, with a pool of its own."""
        opening = open_tools(self.settings, self.tenants, self.announcer)
        services = await self.stack.enter_async_context(opening)
        outfitter = Outfitter(self.tenants, services, default_limits(self.settings))
        speaker = Speakers(self.settings).default
        return Worker(services, outfitter, speaker, self.run, self.thread)


async def make(
    equipment: Equipment,
    name: str,
    arguments: Mapping[str, Any],
    call_id: str = "call",
    stop: RunStop | None = None,
) -> ToolMessage:
    """Make a call as the agent does."""
    token = site_of_call.set(CallSite("message", call_id))
    try:
        call = ToolCall(name=name, args=dict(arguments), id=call_id)
        return await run_call(call, equipment.tools, stop, equipment.slots, equipment.earlier)
    finally:
        site_of_call.reset(token)


def outcome_of(message: ToolMessage) -> str:
    """How a call went."""
    outcome: str = message.response_metadata["stoa"]["outcome"]
    return outcome
