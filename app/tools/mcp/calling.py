"""One call of a server's tool, with whatever may go wrong on the way as its answer.

The order is what keeps promises: the credential is read, the connection leased, then the ledger
asked, which looks at the connection's row once more, and only then the call is made. So nothing is
sent under a credential that was revoked before, and nothing that may change the world is sent
before it is on record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import structlog

from app import faults
from app.tools.calls import Outcome
from app.tools.ledger import Found, IntendedCall
from app.tools.mcp.access import CredentialUnusable
from app.tools.mcp.progress import ProgressEvents
from app.tools.mcp.results import Content, Room, read_result
from app.tools.pool.failures import Reason, ToolServerUnavailable
from app.tools.questions import Asked
from app.tools.redaction import Redactor
from app.tools.servers import Credential, Scope
from tenancy.database.engine import DatabaseUnavailable

if TYPE_CHECKING:
    from uuid import UUID

    from app.tools.ledger import Ending, Entry, Ledger
    from app.tools.mcp.access import Connections, Credentials
    from app.tools.pool.leased import ToolConnection
    from app.tools.servers import McpServer
    from app.tools.site import CallSite
    from tenancy.principal import Owner

log = structlog.get_logger(__name__)

IDEMPOTENCY_KEY: Final = "stoa.dev/idempotency-key"
"""Under which name of a request's ``_meta`` a server finds what to know a repeat by."""

TIMED_OUT = "The tool did not answer in time."
LOST = "The connection to the tool's server was lost before it answered."
MAY_HAVE_HAD_AN_EFFECT = " The call may have had an effect: nobody knows. It was not made again."
IN_DOUBT = (
    "This call was begun before, and nobody knows what came of it."
    " It may have had an effect, so it was not made again."
)
OTHER = "Another call was made in the place of this one. It was not made."
CHANGED = "The connection to the tool's server was changed meanwhile. The call was not made."
DISCONNECTED = "The person does not use this tool's server any more. The call was not made."
UNRECORDED = "The call could not be recorded, so it was not made. Try again later."
TELLING_QUESTION = "The tool's server asked something that it must not. The call was ended."


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a call."""

    content: Content
    outcome: Outcome = Outcome.ERROR
    again: bool = False
    """Whether another try does no harm and may come to more."""

    def as_json(self) -> dict[str, Any]:
        """As the ledger keeps it."""
        return {"content": self.content, "outcome": self.outcome.value}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """As the ledger has kept it."""
        return cls(kept["content"], Outcome(kept["outcome"]))


class ServerCalls:
    """One run's calls to servers, in its user's name."""

    def __init__(
        self, owner: Owner, connections: Connections, credentials: Credentials, ledger: Ledger
    ) -> None:
        self._owner = owner
        self._connections = connections
        self._credentials = credentials
        self._ledger = ledger
        self._room = Room()

    async def make(
        self, site: CallSite, server: McpServer, tool: str, arguments: Mapping[str, Any]
    ) -> Made:
        """Call a tool by its server's name for it.

        Raises:
            Asked: its server wants to know something first; made again, the call goes on.
            LeaseLost: the run is another worker's.
        """
        try:
            made = await self._try(site, server, tool, arguments)
        except DatabaseUnavailable:
            return Made(UNRECORDED)
        if not made.again:
            return made
        try:
            return await self._try(site, server, tool, arguments)
        except DatabaseUnavailable:
            return made if made.outcome is Outcome.LOST else Made(UNRECORDED)

    async def recorded(self, site: CallSite, arguments: Mapping[str, Any]) -> Made | None:
        """What came of a call that was made before, with its server out of reach now.

        Raises:
            DatabaseUnavailable: Postgres is away.
        """
        earlier = await self._ledger.find(site, arguments)
        if earlier is None or earlier.state == "asking":
            return None
        if not earlier.is_same:
            return Made(OTHER)
        return Made.from_json(earlier.result) if earlier.result else Made(IN_DOUBT, Outcome.LOST)

    async def _try(
        self, site: CallSite, server: McpServer, tool: str, arguments: Mapping[str, Any]
    ) -> Made:
        is_shared = server.scope is Scope.SHARED
        credential = Credential()
        try:
            if not is_shared:
                credential = await self._credentials.current(self._owner, server)
            owner = None if is_shared else self._owner.user_id
            call = IntendedCall(server, tool, arguments, None if is_shared else credential.version)
            async with self._connections.lease(owner, server, credential) as connection:
                entry = await self._ledger.begin(site, call)
                if entry.found is not Found.BEGUN:
                    return _known(entry)
                sending = _Sending(
                    self._ledger, site, entry.key, Redactor(server, credential), self._room
                )
                made = await sending.send(connection, call)
        except CredentialUnusable as error:
            return await self.recorded(site, arguments) or Made(_unusable(error.reason))
        except ToolServerUnavailable as error:
            if _is_refusal(error) and await self._has_another(server, credential):
                return Made(_unusable(error.reason), again=True)
            return await self.recorded(site, arguments) or Made(_unusable(error.reason))
        if sending.was_refused:
            await self._has_another(server, credential)
        return made

    async def _has_another(self, server: McpServer, refused: Credential) -> bool:
        """Whether there is another credential by now than the one that the server refused."""
        try:
            await self._credentials.refused(self._owner, server, refused)
        except CredentialUnusable:
            return False
        return True


def _is_refusal(error: ToolServerUnavailable) -> bool:
    """Whether a server does not take what was authorized once."""
    return error.reason == Reason.NEEDS_AUTHORIZATION


def _unusable(reason: str) -> str:
    if reason == Found.DISCONNECTED:
        return DISCONNECTED
    return f"The tool's server cannot be used just now ({reason})."


def _known(entry: Entry) -> Made:
    """The answer to a call that is not to be sent."""
    match entry.found:
        case Found.IN_DOUBT:
            return Made(IN_DOUBT, Outcome.LOST)
        case Found.OTHER:
            return Made(OTHER)
        case Found.DISCONNECTED:
            # Whoever asks for the credential again is told so, and lets go of what is open.
            return Made(DISCONNECTED, again=True)
        case _ if entry.result is not None:
            return Made.from_json(entry.result)
        case _:
            return Made(CHANGED, again=True)


class _Sending:
    """A call that is on record and about to be sent."""

    def __init__(
        self, ledger: Ledger, site: CallSite, key: UUID | None, redactor: Redactor, room: Room
    ) -> None:
        self._ledger = ledger
        self._room = room
        self._site = site
        self._key = key
        self._redactor = redactor
        self.was_refused = False
        """Whether the server did not take the credential."""

    async def send(self, connection: ToolConnection, call: IntendedCall) -> Made:
        """Send it, and record what came of it. One without an answer stays in doubt."""
        progress = ProgressEvents(self._site.tool_call_id, self._redactor)
        faults.reach("tool.begun")
        try:
            result = await connection.call(
                call.tool,
                call.arguments,
                meta={} if self._key is None else {IDEMPOTENCY_KEY: str(self._key)},
                seconds=call.server.timeouts.call,
                progress=progress,
            )
        except Asked as asked:
            return await self._ask(asked)
        except Exception as error:  # noqa: BLE001 - whatever a library makes of an answer
            if isinstance(error, ToolServerUnavailable):
                self.was_refused = _is_refusal(error)
                if error.is_unheard:
                    return await self._unheard(error)
            return _failed(call, error)
        finally:
            progress.close()
        faults.reach("tool.answered")
        answer = read_result(result, self._redactor, self._room)
        went = Outcome.CUT if answer.is_cut else Outcome.OK
        made = await self._end(Made(answer.content, Outcome.ERROR if answer.is_error else went))
        faults.reach("tool.recorded")
        return made

    async def _unheard(self, error: ToolServerUnavailable) -> Made:
        """Let the call be made again under its key: what is not let in has had no effect.

        That the connection ended because another call's credential was refused says nothing of
        this one, which may be under way at the server.
        """
        if self._key is not None:
            await self._ledger.end(self._site, self._key, "asking")
        return Made(_unusable(error.reason), again=True)

    async def _ask(self, asked: Asked) -> Made:
        """Let the question be asked, and the call be made again under its key.

        Raises:
            Asked: always, but where the question itself gives the person's secret away.
        """
        if self._redactor.holds_secret(_texts(asked)):
            return await self._end(Made(TELLING_QUESTION))
        if self._key is not None:
            with suppress(DatabaseUnavailable):  # then it is in doubt
                await self._ledger.end(self._site, self._key, "asking")
        raise asked

    async def _end(self, made: Made) -> Made:
        """Record it. What the database does not take stays in doubt for others, not for us."""
        if self._key is not None:
            ending: Ending = "failed" if made.outcome is Outcome.ERROR else "done"
            with suppress(DatabaseUnavailable):
                await self._ledger.end(self._site, self._key, ending, made.as_json())
        return made


def _failed(call: IntendedCall, error: Exception) -> Made:
    """The answer where there is no result. Nobody hears what the error says of our side."""
    if isinstance(error, TimeoutError):
        return _unanswered(call, TIMED_OUT, Outcome.TIMEOUT)
    if isinstance(error, ToolServerUnavailable):
        return _unanswered(call, LOST, Outcome.ERROR, may_repeat=True)
    log.warning(
        "a call of a server's tool failed",
        server=call.server.log_name,
        error=type(error).__name__,
    )
    return _unanswered(call, LOST, Outcome.ERROR)


def _unanswered(
    call: IntendedCall, why: str, outcome: Outcome, *, may_repeat: bool = False
) -> Made:
    """A call of which nobody knows what came, unless it changes nothing."""
    if not call.is_recorded:
        return Made(why, outcome, again=may_repeat)
    again = may_repeat and call.repeat_seconds > 0
    return Made(why + MAY_HAVE_HAD_AN_EFFECT, Outcome.LOST, again=again)


def _texts(asked: Asked) -> list[str]:
    return [
        json.dumps([question.message, question.schema, question.url], ensure_ascii=False)
        for question in asked.questions
    ]
