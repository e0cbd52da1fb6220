"""One call of a server's tool, with whatever may go wrong on the way as its answer.

The order is what keeps promises: the credential is read, the connection leased, then the ledger
asked, which looks at the connection's row and at what the person approved once more, and only then
the call is made. So nothing is sent under a credential that was revoked before, nothing that was
not approved as it stands, and nothing that may change the world before it is on record.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from app.tools.effects import Found, IntendedCall
from app.tools.mcp.access import CredentialUnusable
from app.tools.mcp.made import CHANGED, DISCONNECTED, OTHER, UNRECORDED, Made
from app.tools.mcp.results import Room
from app.tools.mcp.sending import Sending, is_refusal, known_of, unusable
from app.tools.mcp.terms import Terms
from app.tools.pool.failures import ToolServerUnavailable
from app.tools.redaction import Redactor
from app.tools.servers import Credential, Scope
from app.tools.waiting import InDoubt, NotApproved
from tenancy.database.engine import DatabaseUnavailable

if TYPE_CHECKING:
    from app.tools.effects import Entry
    from app.tools.ledger import Ledger
    from app.tools.mcp.access import Connections, Credentials
    from app.tools.mcp.late import LateAnswers
    from app.tools.servers import McpServer
    from app.tools.site import CallSite
    from tenancy.principal import Owner

_ANYBODYS = Terms()


class ServerCalls:
    """One run's calls to servers, in its user's name."""

    def __init__(
        self,
        owner: Owner,
        connections: Connections,
        credentials: Credentials,
        ledger: Ledger,
        late: LateAnswers | None = None,
    ) -> None:
        """``late`` listens to calls whose time is over; without it, nobody does."""
        self._owner = owner
        self._connections = connections
        self._credentials = credentials
        self._ledger = ledger
        self._late = late
        self._room = Room()

    async def make(
        self,
        site: CallSite,
        server: McpServer,
        tool: str,
        arguments: Mapping[str, Any],
        terms: Terms = _ANYBODYS,
    ) -> Made:
        """Call a tool by its server's name for it.

        Raises:
            Asked: its server wants to know something first; made again, the call goes on.
            NotApproved: its person has to approve it first.
            InDoubt: nobody knows what came of it; its person has to say what to make of that.
            LeaseLost: the run is another worker's.
        """
        if site.doubt is not None:
            known = await self._answered(site, server.name, tool, arguments)
            if known is not None:
                return known
        try:
            made = await self._try(site, server, tool, arguments, terms)
            if made.again:
                made = await self._try_again(made, site, server, tool, arguments, terms)
            if made.again and made.doubt is None:
                # Neither was sent; but an attempt before this one may have sent it.
                made = await self.recorded(site, arguments) or made
        except DatabaseUnavailable:
            return self._unrecorded(server, tool, UNRECORDED)
        if made.doubt is not None:
            raise made.doubt
        return made

    async def refuse(
        self, site: CallSite, server: McpServer, tool: str, arguments: Mapping[str, Any], why: str
    ) -> Made:
        """Say why a call is not made; of one that was made before, what came of it.

        Raises:
            InDoubt: nobody knows.
        """
        try:
            return await self.recorded(site, arguments) or Made(why)
        except DatabaseUnavailable:
            return self._unrecorded(server, tool, why)

    async def recorded(self, site: CallSite, arguments: Mapping[str, Any]) -> Made | None:
        """What came of a call that was made before, and cannot be made now.

        Raises:
            InDoubt: nobody knows.
            DatabaseUnavailable: Postgres is away.
        """
        look = self._ledger.find if site.doubt is None else self._ledger.settle_doubt
        earlier = await look(site, arguments)
        if earlier is None or earlier.state == "asking":
            return None
        if not earlier.is_same:
            return Made(OTHER)
        if earlier.result is None:
            raise InDoubt(known_of("lost", earlier), earlier.server, earlier.tool)
        return Made.from_json(earlier.result)

    def _unrecorded(self, server: McpServer, tool: str, why: str) -> Made:
        """What is said of a call with Postgres away, which knows whether it was made before.

        Raises:
            InDoubt: an earlier attempt at the run may have begun it.
        """
        if self._ledger.run.is_first_claim or server.trust.is_read_only(tool):
            return Made(why)
        raise InDoubt({"why": "lost"}, server.name, tool)

    async def _answered(
        self, site: CallSite, server: str, tool: str, arguments: Mapping[str, Any]
    ) -> Made | None:
        """What came of a call in doubt, by what its person or its server has said since.

        Raises:
            InDoubt: Postgres is away.
        """
        try:
            earlier = await self._ledger.settle_doubt(site, arguments)
        except DatabaseUnavailable:
            raise InDoubt({"why": "lost"}, server, tool) from None
        if earlier is None or earlier.result is None or not earlier.is_same:
            return None
        return Made.from_json(earlier.result)

    async def _try(
        self,
        site: CallSite,
        server: McpServer,
        tool: str,
        arguments: Mapping[str, Any],
        terms: Terms,
    ) -> Made:
        is_shared = server.scope is Scope.SHARED
        credential = Credential()
        try:
            if not is_shared:
                credential = await self._credentials.current(self._owner, server)
            owner = None if is_shared else self._owner.user_id
            call = IntendedCall(server, tool, arguments, None if is_shared else credential.version)
            async with AsyncExitStack() as lease:
                leasing = self._connections.lease(owner, server, credential)
                connection = await lease.enter_async_context(leasing)
                entry = await self._ledger.begin(site, call, terms.needs(arguments))
                if entry.found is not Found.BEGUN:
                    return _known(entry, call)
                sending = Sending(
                    self._ledger,
                    site,
                    call,
                    entry,
                    Redactor(server, credential),
                    self._room,
                    self._late,
                )
                made = await sending.send(connection, lease)
        except CredentialUnusable as error:
            return await self.recorded(site, arguments) or Made(_unusable(error.reason))
        except ToolServerUnavailable as error:
            if is_refusal(error) and await self._has_another(server, credential):
                return Made(_unusable(error.reason), again=True)
            return await self.recorded(site, arguments) or Made(_unusable(error.reason))
        if sending.was_refused:
            await self._has_another(server, credential)
        return made

    async def _try_again(
        self,
        before: Made,
        site: CallSite,
        server: McpServer,
        tool: str,
        arguments: Mapping[str, Any],
        terms: Terms,
    ) -> Made:
        try:
            await terms.renew()
            return await self._try(site, server, tool, arguments, terms)
        except DatabaseUnavailable:
            if before.doubt is None:
                raise
            return before

    async def _has_another(self, server: McpServer, refused: Credential) -> bool:
        """Whether there is another credential by now than the one that the server refused."""
        try:
            await self._credentials.refused(self._owner, server, refused)
        except CredentialUnusable:
            return False
        return True


def _unusable(reason: str) -> str:
    return DISCONNECTED if reason == Found.DISCONNECTED else unusable(reason)


def _known(entry: Entry, call: IntendedCall) -> Made:
    """The answer to a call that is not to be sent.

    Raises:
        NotApproved: its person has to approve it first.
        InDoubt: it was sent before, and nobody knows what came of it.
    """
    match entry.found:
        case Found.IN_DOUBT:
            known = known_of("lost", entry)
            if entry.changed:
                known["changed"] = list(entry.changed)
            raise InDoubt(known, call.server.name, call.tool)
        case Found.UNAPPROVED:
            raise NotApproved(entry.changed)
        case Found.OTHER:
            return Made(OTHER)
        case Found.DISCONNECTED:
            # Whoever asks for the credential again is told so, and lets go of what is open.
            return Made(DISCONNECTED, again=True)
        case _ if entry.result is not None:
            return Made.from_json(entry.result)
        case _:
            return Made(CHANGED, again=True)
