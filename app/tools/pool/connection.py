"""One connection to a tool server, opened and closed by one task of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextvars import Context
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from app.stopping import end_task, take_error
from app.telemetry.spans import current_facts
from app.tools.pool.failures import NotReadable, Reason, ToolServerUnavailable
from app.tools.pool.offered import Offered
from app.tools.questions import Asked
from app.tools.redaction import SHORTEST_PART, Redactor

if TYPE_CHECKING:
    import mcp_types

    from app.tools.pool.leased import ConnectionKey, Progress
    from app.tools.pool.opening import Line
    from app.tools.pool.surroundings import Surroundings
    from app.tools.pool.watching import Watch
    from app.tools.readable import Readable
    from app.tools.servers import Credential, ListedTool, McpServer
    from tenancy.principal import UserId

log = structlog.get_logger(__name__)

T = TypeVar("T")

END_SECONDS = 2.0
"""How long a server may take to hear that a call is given up."""
CLOSE_SECONDS = 10.0
"""How long closing may take, whatever the server does meanwhile."""


@dataclass(slots=True)
class _Timed:
    """A call under way."""

    outcome: str = "lost"
    is_let_in: bool = False
    """Whether the server has begun to deal with it, for sure."""

    def let_in(self) -> None:
        """The server has said something of it."""
        self.is_let_in = True


class Connection:
    """A connection, from before it is opened until nothing of it is left."""

    def __init__(
        self,
        key: ConnectionKey,
        server: McpServer,
        answered: Callable[[], None],
        watch: Watch,
        *,
        tools_only: bool = False,
    ) -> None:
        """``tools_only``: it is asked for nothing beside its tools."""
        loop = asyncio.get_running_loop()
        self.key = key
        self.server = server
        self.leases = 0
        self.is_outdated = False
        """Whether it is to be closed as soon as it is not in use."""
        self.last_used = loop.time()
        self.opened: asyncio.Future[None] = loop.create_future()
        """Done once it can be used, or will never be."""
        self.ended: asyncio.Future[Reason] = loop.create_future()
        """Why it cannot be used any more."""
        self._answered = answered
        self._watch = watch
        self._offered = Offered(server, tools_only=tools_only)
        self._line: Line | None = None
        self._opening: asyncio.Timeout | None = None
        self._closing: asyncio.Timeout | None = None

    @property
    def owner(self) -> UserId | None:
        """Whose it is; None is everybody's."""
        return self.key.owner

    @property
    def is_closing(self) -> bool:
        """Whether it will be gone soon."""
        return self.ended.done()

    @property
    def lost(self) -> Reason | None:
        """Why it ended though nobody had closed it; None as long as it did not."""
        reason = self.ended.result() if self.ended.done() else None
        return None if reason is Reason.CLOSED else reason

    @property
    def is_open(self) -> bool:
        """Whether it can be used, as far as is known."""
        return self.opened.done() and not self.is_closing

    @property
    def is_idle(self) -> bool:
        """Whether nobody uses it or waits for it."""
        return self.leases == 0 and self.is_open

    @property
    def tools(self) -> tuple[ListedTool, ...]:
        """What is offered, as last listed."""
        return self._offered.listing.tools

    @property
    def listing_version(self) -> str:
        """The same for the same tools."""
        return self._offered.listing.version

    @property
    def readable(self) -> Readable:
        """What it lets be read, as last listed."""
        return self._offered.readable

    async def until_whole(self, seconds: float) -> None:
        """Return once all that it offers was listed; see :class:`ToolConnection`."""
        await self._offered.until_whole(seconds)

    @property
    def is_asked_beside(self) -> bool:
        """Whether it is being asked for what it lets be read, or was when it ended."""
        return self._offered.is_asked_beside

    @property
    def pid(self) -> int | None:
        """The server's process, where it is a child."""
        child = None if self._line is None else self._line.child
        return None if child is None else child.pid

    def start(self, credential: Credential, surroundings: Surroundings) -> asyncio.Task[None]:
        """Begin to open it. The task ends when nothing of the connection is left.

        It begins in an empty context: nothing of whoever came first is everybody's.
        """
        return asyncio.create_task(
            self._own(credential, surroundings),
            name=f"connection to {self.server.log_name}",
            context=Context(),
        )

    def close(self, reason: Reason = Reason.CLOSED) -> None:
        """Have the connection's own task close it; calls under way end now."""
        if not self.ended.done():
            self.ended.set_result(reason)
        if not self.opened.done():
            self.opened.set_result(None)
        self._offered.wake()
        now = asyncio.get_running_loop().time()
        # What is over takes no other time, and needs none.
        with contextlib.suppress(RuntimeError):
            if self._opening is not None:
                self._opening.reschedule(now)
        with contextlib.suppress(RuntimeError):
            if self._closing is not None and self._closing.when() is None:
                self._closing.reschedule(now + CLOSE_SECONDS)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any],
        seconds: float,
        progress: Progress | None = None,
        late_seconds: float = 0.0,
    ) -> mcp_types.CallToolResult:
        """Make one call; see :class:`ToolConnection`."""
        from app.tools.pool.calling import call_tool  # noqa: PLC0415 - as in opening

        line = self._line
        if line is None or self.ended.done():
            raise self._unavailable(is_unheard=True)
        current_facts().say({"stoa.server": self.server.log_name})
        with self._timed(seconds, self._watch.called) as timed:
            call = call_tool(
                line, tool, dict(arguments), dict(meta), progress, timed.let_in, self.server.name
            )
            try:
                async with asyncio.timeout(seconds + late_seconds):
                    result = await self._while_open(call)
            except ToolServerUnavailable as error:
                is_unheard = not timed.is_let_in and line.wire.turned_away(meta)
                reason = Reason(error.reason)
                raise ToolServerUnavailable(
                    self.server.name, reason, is_unheard=is_unheard
                ) from None
            timed.outcome = "error" if result.is_error else "ok"
        self._answered()
        return result

    async def read_resource(self, uri: str, *, seconds: float) -> mcp_types.ReadResourceResult:
        """Read a resource; see :class:`ToolConnection`."""
        from app.tools.pool.reading import read_resource  # noqa: PLC0415 - as in opening

        return await self._read(lambda line: read_resource(line, uri, self.server.name), seconds)

    async def get_prompt(self, name: str, *, seconds: float) -> mcp_types.GetPromptResult:
        """Ask for what a prompt says; see :class:`ToolConnection`."""
        from app.tools.pool.reading import get_prompt  # noqa: PLC0415 - as in opening

        return await self._read(lambda line: get_prompt(line, name, self.server.name), seconds)

    async def _read(self, read: Callable[[Line], Coroutine[Any, Any, T]], seconds: float) -> T:
        line = self._line
        if line is None or self.ended.done():
            raise self._unavailable(is_unheard=True)
        with self._timed(seconds, self._watch.read) as timed:
            try:
                async with asyncio.timeout(seconds):
                    result = await self._while_open(read(line))
            except NotReadable:
                timed.outcome = "error"
                raise
            timed.outcome = "ok"
        self._answered()
        return result

    @contextlib.contextmanager
    def _timed(self, seconds: float, tell: Callable[[str, str, float], None]) -> Iterator[_Timed]:
        """Tell whoever counts how long a call took, and how it ended: in its time, or not."""
        clock = asyncio.get_running_loop().time
        begun, timed = clock(), _Timed()
        try:
            yield timed
        except Asked:
            timed.outcome = "asked"
            raise
        except TimeoutError:
            timed.outcome = "timeout"
            raise
        except asyncio.CancelledError:
            timed.outcome = "stopped"
            raise
        finally:
            took = clock() - begun
            outcome = "timeout" if took > seconds else timed.outcome
            tell(self.server.log_name, outcome, min(took, seconds))

    def _lose(self, reason: Reason) -> None:
        """It is lost; unless its time to open is over, and this is what comes of giving it up."""
        if self._opening is None or not self._opening.expired():
            self.close(reason)

    def _unavailable(self, *, is_unheard: bool = False) -> ToolServerUnavailable:
        reason = self.ended.result() if self.ended.done() else Reason.CLOSED
        return ToolServerUnavailable(self.server.name, reason, is_unheard=is_unheard)

    async def _while_open(self, work: Coroutine[Any, Any, T]) -> T:
        """Do this, but no longer than the connection can be used."""
        task = asyncio.create_task(work)
        waiting: set[asyncio.Future[Any]] = {task, self.ended}
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await end_task(task, END_SECONDS)
            raise
        if task.done():
            return task.result()
        # It ends by itself: the session that it waits for is being closed.
        task.add_done_callback(take_error)
        task.cancel()
        raise self._unavailable()

    async def _own(self, credential: Credential, surroundings: Surroundings) -> None:
        """Open, keep and close it: all in this task."""
        try:
            async with asyncio.timeout(None) as self._closing:
                await self._open_and_keep(credential, surroundings)
        except ToolServerUnavailable as error:
            self.close(Reason(error.reason))
        except TimeoutError:
            self.close(Reason.TIMEOUT)
        except Exception as error:  # noqa: BLE001 - whatever a library says of a dead server
            if not self.ended.done():
                log.info(
                    "tool server failed", server=self.server.log_name, error=type(error).__name__
                )
            self.close(Reason.PROTOCOL)
        finally:
            self._line = None
            self.close()

    async def _open_and_keep(self, credential: Credential, surroundings: Surroundings) -> None:
        opening = await asyncio.to_thread(import_module, "app.tools.pool.opening")
        seconds = self.server.timeouts
        self._offered.redactor = Redactor(self.server, credential, SHORTEST_PART)
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(seconds.connect) as self._opening:
                if self.ended.done():
                    return
                opened = opening.opened(
                    self.key.owner,
                    self.server,
                    credential,
                    surroundings,
                    opening.Heard(changed=self._offered.changed, lost=self._lose),
                )
                line: Line = await stack.enter_async_context(opened)
                self._line = line
            async with asyncio.timeout(seconds.listing) as self._opening:
                await self._offered.list_tools(line)
            if not self.opened.done():
                self.opened.set_result(None)
            await self._offered.keep(line, self.ended, self._while_open)
