"""Everything the HTTP API is served with, built once per process."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.admin.acts import Acts
from app.admin.audit import AuditAdmin
from app.admin.scheduler import SchedulerAdmin
from app.admin.usage import UsageAdmin
from app.admin.users import UsersAdmin
from app.agent.graphs import GraphCatalogue
from app.api.departures import Departures
from app.api.readiness import Readiness
from app.api.streams import OpenStreams
from app.api.turns import RequestTurns
from app.connections.changing import ConnectionChanges
from app.connections.oauth.authorizations import Authorizations
from app.connections.oauth.oauth import OAuth
from app.connections.opening import open_vault, public_address
from app.connections.standing import UserConnections
from app.databases import dispatch_settings, listen_dsn, service_settings
from app.erasure.hashing import identity_hashes
from app.erasure.requests import ErasureRequests
from app.export.conversation import Conversations
from app.export.everything import Everything
from app.export.ongoing import OngoingExports
from app.memory.memories import Memories
from app.mentions.opening import Mentions, open_mentions
from app.models.catalogue.catalogue import ModelCatalogue
from app.runs.history import ThreadHistory
from app.runs.referenced import ReferencedStates
from app.runs.state_update import StateUpdates
from app.runs.tail import RunTail
from app.runtime.watch import RuntimeWatch
from app.settings import Settings, SettingsError
from app.sharing import default_limits
from app.tools.approval.ruling import Ask
from app.tools.catalogue import Catalogue
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.database.signals import USER_CHANGED, Announcer
from tenancy.database.tenant import TenantDatabase
from tenancy.identity import IdentityVerifier, JwtIdentitySettings
from tenancy.identity.directory import UserDirectory
from tenancy.scheduler.standing import StandingDatabase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tenancy.scheduler.limits import Limits


@dataclass(frozen=True, slots=True)
class Services:
    """What handlers work with. Shared by all requests of the process."""

    settings: Settings
    limits: Limits
    """Of those for whom no others were set."""
    database: TenantDatabase
    checkpoints: CheckpointPool
    memories: Memories
    mentions: Mentions
    connections: UserConnections
    connection_changes: ConnectionChanges
    authorizations: Authorizations
    standing: StandingDatabase
    verifier: IdentityVerifier
    directory: UserDirectory
    graphs: GraphCatalogue
    history: ThreadHistory
    state_updates: StateUpdates
    states: ReferencedStates
    tail: RunTail
    runtime: RuntimeWatch
    catalogue: ModelCatalogue
    announcer: Announcer
    streams: OpenStreams
    turns: RequestTurns
    conversations: Conversations
    everything: Everything
    exports: OngoingExports
    readiness: Readiness
    scheduler_admin: SchedulerAdmin
    usage_admin: UsageAdmin
    erasures: ErasureRequests
    users_admin: UsersAdmin
    audit_admin: AuditAdmin
    acts: Acts


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Build and start the services; end them, last first, when the block ends.

    Raises:
        SettingsError: one that is needed is missing, or a catalogue of tools cannot be used.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    catalogue = Catalogue.load(settings.mcp_config, Ask(settings.approval_default))
    database_settings = service_settings(settings)
    async with AsyncExitStack() as stack:
        database = TenantDatabase(database_settings)
        stack.push_async_callback(database.close)
        standing = StandingDatabase(dispatch_settings(settings))
        stack.push_async_callback(standing.close)
        pool = CheckpointPool(database_settings)
        await pool.open()
        stack.push_async_callback(pool.close)
        verifier = IdentityVerifier(identity_settings(settings))
        stack.push_async_callback(verifier.aclose)
        graphs = GraphCatalogue(settings)
        directory, streams = UserDirectory(database, identity_hashes(settings)), OpenStreams()
        departures = Departures(directory, streams)
        stack.push_async_callback(departures.aclose)
        tail = RunTail(database, listen_dsn(settings), {USER_CHANGED: departures.hear})
        await tail.start()
        stack.push_async_callback(tail.stop)
        runtime = RuntimeWatch(settings)
        stack.push_async_callback(runtime.stop)
        await runtime.start()
        models = ModelCatalogue(settings, lambda: runtime.parts, standing.call_seconds)
        stack.push_async_callback(models.stop)
        await models.start()
        announcer = Announcer(listen_dsn(settings))
        await announcer.start()
        stack.push_async_callback(announcer.stop)
        connections = UserConnections(
            database, catalogue.servers, announcer, own_allowed=settings.mcp_own_servers
        )
        oauth = OAuth(public_address(settings))
        vault = open_vault(settings, database)
        changes = ConnectionChanges(connections, vault, announcer, oauth)
        scheduler_admin = SchedulerAdmin(settings)
        stack.push_async_callback(scheduler_admin.close)
        erasures = ErasureRequests(settings)
        stack.push_async_callback(erasures.close)
        usage_admin = UsageAdmin(settings)
        stack.push_async_callback(usage_admin.close)
        users_admin = UsersAdmin(settings)
        stack.push_async_callback(users_admin.close)
        audit_admin = AuditAdmin(settings)
        stack.push_async_callback(audit_admin.close)
        acts = Acts(settings)
        stack.push_async_callback(acts.close)
        history = ThreadHistory(database, pool, graphs)
        conversations = Conversations(history)
        memories = Memories(database, default_limits(settings))
        yield Services(
            settings=settings,
            limits=default_limits(settings),
            database=database,
            checkpoints=pool,
            memories=memories,
            mentions=open_mentions(
                *(database, memories, connections, settings.builtin_tools),
                lambda: [each.model for each in models.models],
            ),
            connections=connections,
            connection_changes=changes,
            authorizations=Authorizations(database, vault, changes, oauth),
            standing=standing,
            verifier=verifier,
            directory=directory,
            graphs=graphs,
            history=history,
            state_updates=StateUpdates(database, pool, graphs),
            states=ReferencedStates(database, pool, graphs),
            tail=tail,
            runtime=runtime,
            catalogue=models,
            announcer=announcer,
            streams=streams,
            turns=RequestTurns(),
            conversations=conversations,
            everything=Everything(database, conversations, settings.mcp_folder),
            exports=OngoingExports(),
            readiness=Readiness(settings, database_settings),
            scheduler_admin=scheduler_admin,
            usage_admin=usage_admin,
            erasures=erasures,
            users_admin=users_admin,
            audit_admin=audit_admin,
            acts=acts,
        )


def identity_settings(settings: Settings) -> JwtIdentitySettings:
    """What assertions are checked against.

    Raises:
        SettingsError: one that is needed is missing, or cannot be used.
    """
    try:
        return JwtIdentitySettings(
            header=settings.identity_header,
            issuer=settings.required("identity_issuer"),
            audience=settings.required("identity_audience"),
            jwks_url=settings.required("identity_jwks_url"),
            ca_file=settings.identity_ca,
            admin_claim=settings.identity_admin_claim,
            admin_value=settings.identity_admin_value,
        )
    except ValueError as error:
        raise SettingsError(f"STOA_IDENTITY_…: {error}") from error
