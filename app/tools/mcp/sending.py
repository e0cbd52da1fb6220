"""Sending a call that is on record, and recording what came of it."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import structlog

from app import faults
from app.stopping import end_task
from app.tools.mcp.made import LOST, TELLING_QUESTION, TIMED_OUT, Made
from app.tools.mcp.progress import ProgressEvents
from app.tools.mcp.results import Room, read_result
from app.tools.outcomes import Outcome
from app.tools.pool.failures import Reason, ToolServerUnavailable
from app.tools.questions import Asked
from app.tools.waiting import InDoubt
from tenancy.database.engine import DatabaseUnavailable
from tenancy.errors import LeaseLost

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from mcp_types import CallToolResult

    from app.tools.effects import Ending, Entry, IntendedCall
    from app.tools.ledger import Ledger
    from app.tools.mcp.late import LateAnswers
    from app.tools.pool.leased import ToolConnection
    from app.tools.redaction import Redactor
    from app.tools.site import CallSite

log = structlog.get_logger(__name__)

IDEMPOTENCY_KEY: Final = "stoa.dev/idempotency-key"
"""Under which name of a request's ``_meta`` a server finds what to know a repeat by."""

END_SECONDS = 2.0
"""How long a server may take to hear that a call is given up."""


class Sending:
    """A call that is on record and about to be sent."""

    def __init__(
        self,
        ledger: Ledger,
        site: CallSite,
        call: IntendedCall,
        entry: Entry,
        redactor: Redactor,
        room: Room,
        late: LateAnswers | None,
    ) -> None:
        """``late`` listens to calls whose time is over; without it, nobody does."""
        self._ledger = ledger
        self._site = site
        self._call = call
        self._entry = entry
        self._key = entry.key
        self._redactor = redactor
        self._room = room
        self._late = late
        self.was_refused = False
        """Whether the server did not take the credential."""

    async def send(self, connection: ToolConnection, lease: AsyncExitStack) -> Made:
        """Send it, and record what came of it. One without an answer stays in doubt.

        ``lease`` gives the connection back; whoever goes on listening to the call takes it over.
        """
        progress = ProgressEvents(self._site.tool_call_id, self._redactor)
        faults.reach("tool.begun")
        try:
            result = await self._answer(connection, progress, lease)
        except Asked as asked:
            return await self._ask(asked)
        except Exception as error:  # noqa: BLE001 - whatever a library makes of an answer
            if isinstance(error, ToolServerUnavailable):
                self.was_refused = is_refusal(error)
                if error.is_unheard:
                    return await self._unheard(error)
            return self._failed(error)
        finally:
            progress.close()
        faults.reach("tool.answered")
        made = await self._end(self._read(result))
        faults.reach("tool.recorded")
        return made

    async def _answer(
        self, connection: ToolConnection, progress: ProgressEvents, lease: AsyncExitStack
    ) -> CallToolResult:
        """What the server answers in time.

        Raises:
            TimeoutError: nothing. Where the call may change anything, it is listened to from now
                on by others, as long as they have room.
        """
        seconds = self._call.server.timeouts.call
        owner = self._ledger.run.user_id
        if self._key is None or self._late is None or not self._late.has_room(owner):
            return await connection.call(
                self._call.tool,
                self._call.arguments,
                meta={} if self._key is None else {IDEMPOTENCY_KEY: str(self._key)},
                seconds=seconds,
                progress=progress,
            )
        answer = asyncio.create_task(
            connection.call(
                self._call.tool,
                self._call.arguments,
                meta={IDEMPOTENCY_KEY: str(self._key)},
                seconds=seconds,
                late_seconds=self._late.seconds,
                progress=progress,
            ),
            name="call of a tool",
        )
        try:
            await asyncio.wait({answer}, timeout=seconds)
        except asyncio.CancelledError:
            await end_task(answer, END_SECONDS)
            raise
        if answer.done():
            return answer.result()
        if self._late.has_room(owner):  # others' time may have been over before
            self._late.listen(owner, answer, lease.pop_all(), self._record_late)
        else:
            await end_task(answer, END_SECONDS)
        raise TimeoutError

    def _read(self, result: CallToolResult) -> Made:
        answer = read_result(result, self._redactor, self._room)
        went = Outcome.CUT if answer.is_cut else Outcome.OK
        return Made(answer.content, Outcome.ERROR if answer.is_error else went)

    async def _unheard(self, error: ToolServerUnavailable) -> Made:
        """Let the call be made again under its key: what is not let in has had no effect.

        That the connection ended because another call's credential was refused says nothing of
        this one, which may be under way at the server.
        """
        if self._key is not None:
            await self._ledger.end(self._site, self._key, "asking")
        return Made(unusable(error.reason), again=True)

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
        """Record it. What the database does not take stays in doubt for others, not for us.

        Raises:
            LeaseLost: the run is another worker's, which hears what came of the call all the same.
        """
        if self._key is not None:
            try:
                with suppress(DatabaseUnavailable):
                    await self._ledger.end(self._site, self._key, _ending(made), made.as_json())
            except LeaseLost:
                await self._record(made)
                raise
        return made

    async def _record_late(self, result: CallToolResult) -> None:
        await self._record(self._read(result))

    async def _record(self, made: Made) -> None:
        if self._late is not None and self._key is not None:
            await self._late.record(self._ledger, self._site, self._key, _ending(made), made)

    def _failed(self, error: Exception) -> Made:
        """The answer where there is no result. Nobody hears what the error says of our side."""
        if isinstance(error, TimeoutError):
            return self._unanswered("timeout", Made(TIMED_OUT, Outcome.TIMEOUT), may_repeat=True)
        if isinstance(error, ToolServerUnavailable):
            return self._unanswered("unanswered", Made(LOST, again=True), may_repeat=True)
        log.warning(
            "a call of a server's tool failed",
            server=self._call.server.log_name,
            error=type(error).__name__,
        )
        return self._unanswered("unanswered", Made(LOST), may_repeat=False)

    def _unanswered(self, why: str, harmless: Made, *, may_repeat: bool) -> Made:
        """A call of which nobody knows what came, unless it changes nothing."""
        if not self._call.is_recorded:
            return harmless
        again = may_repeat and self._call.repeat_seconds > 0
        known = known_of(why, self._entry)
        doubt = InDoubt(known, self._call.server.name, self._call.tool)
        return Made(harmless.content, Outcome.LOST, again=again, doubt=doubt)


def known_of(why: str, entry: Entry | Any) -> dict[str, Any]:  # noqa: ANN401 - has the same two
    """What the person is told of a call in doubt."""
    known: dict[str, Any] = {"why": why, "sent": entry.sent}
    if entry.started_at is not None:
        known["started_at"] = entry.started_at.isoformat()
    return known


def unusable(reason: str) -> str:
    """What the model is told of a server that cannot be called."""
    return f"The tool's server cannot be used just now ({reason})."


def is_refusal(error: ToolServerUnavailable) -> bool:
    """Whether a server does not take what was authorized once."""
    return error.reason == Reason.NEEDS_AUTHORIZATION


def _ending(made: Made) -> Ending:
    return "failed" if made.outcome is Outcome.ERROR else "done"


def _texts(asked: Asked) -> list[str]:
    return [
        json.dumps([question.message, question.schema, question.url], ensure_ascii=False)
        for question in asked.questions
    ]
