"""What a worker's tools come from, built from the settings and started with it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from app.connections.credentials import Credentials
from app.connections.known import KnownConnections
from app.connections.oauth.oauth import OAuth
from app.connections.opening import open_vault, public_address
from app.connections.reading import ConnectionReader
from app.connections.standing import UserConnections
from app.memory.embedding import Embedder
from app.outbound import guarded_mcp_client_factory
from app.runs.tail import run_key
from app.tools.approval.ruling import Ask
from app.tools.catalogue import Catalogue
from app.tools.mcp.late import LateAnswers
from app.tools.pool.pool import ToolPool
from app.tools.stdio.readiness import get_ready
from app.worker.told_standings import ToldStandings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from app.settings import BuiltinTool, Settings
    from app.tools.pool.watching import Watch
    from tenancy.database.signals import Announcer
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun


@dataclass(frozen=True, slots=True)
class ToolServices:
    """One worker's servers, their connections, and what proves whose they are."""

    pool: ToolPool
    connections: UserConnections
    credentials: Credentials
    known: KnownConnections
    """Which of people's connections are in use here."""
    has_servers: bool
    """Whether anybody can have any; where not, none are looked for."""
    builtin: frozenset[BuiltinTool]
    fetch_asks: Ask
    """When people are asked before ``fetch`` visits a host."""
    late: LateAnswers
    """Listens to calls whose time is over."""
    reader: ConnectionReader
    """Reads what people point at in messages, of their servers."""
    embedder: Embedder | None = None


@asynccontextmanager
async def open_tools(
    settings: Settings,
    database: TenantDatabase,
    announcer: Announcer,
    watch: Watch | None = None,
) -> AsyncIterator[ToolServices]:
    """Read the catalogue, and close every connection at the end. ``watch`` counts them.

    Raises:
        SettingsError: the catalogue, the keys, the folder or the sandbox cannot be used.
    """
    servers = Catalogue.load(settings.mcp_config, Ask(settings.approval_default)).servers
    connections = UserConnections(
        database, servers, announcer, own_allowed=settings.mcp_own_servers
    )
    known = KnownConnections()
    oauth = OAuth(public_address(settings))
    vault = open_vault(settings, database)
    credentials = Credentials(connections.rows, vault, oauth, announcer, known)
    standings = ToldStandings(connections)
    pool = ToolPool.from_settings(
        settings, servers.values(), guarded_mcp_client_factory, watch, standings
    )
    embedder = None if settings.embedding_model is None else Embedder(settings.embedding_model)
    get_ready(servers.values(), settings.mcp_folder)
    late = LateAnswers(partial(_announce, announcer))
    try:
        await pool.start()
        yield ToolServices(
            pool,
            connections,
            credentials,
            known,
            has_servers=bool(servers) or settings.mcp_own_servers,
            builtin=frozenset(settings.builtin_tools),
            fetch_asks=Ask(settings.approval_fetch),
            late=late,
            reader=ConnectionReader(connections, credentials, pool),
            embedder=embedder,
        )
    finally:
        await late.aclose()
        await pool.stop()
        await standings.aclose()
        await credentials.aclose()


def _announce(announcer: Announcer, run: ClaimedRun, goes_on: bool) -> None:  # noqa: FBT001 - told
    """Tell of an outcome that came late; by it, a run may go on that had asked its person."""
    key = run_key(run.user_id, run.run_id)
    announcer.approval_changed(key)
    if goes_on:
        announcer.run_queued()
        announcer.run_changed(key)
