"""What one connection's server offers, as it listed it last: anew wherever it has changed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import structlog

from app.stopping import end_task
from app.tools.pool.failures import ToolServerUnavailable
from app.tools.pool.listing import Listing, list_within_bounds
from app.tools.pool.pages import each_page
from app.tools.pool.readable_listing import (
    MAX_LISTED,
    prompts_within_bounds,
    resources_within_bounds,
)
from app.tools.readable import Readable
from app.tools.redaction import SHORTEST_PART, Redactor
from app.tools.servers import Credential

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from app.tools.pool.opening import Line
    from app.tools.servers import McpServer

log = structlog.get_logger(__name__)

RELIST_SECONDS = 1.0
RELISTS_PER_SECOND = 1 / 30
MOST_RELISTS = 10.0
"""Between two listings, however often a server says that what it offers has changed; and so many in
a row, before its pace is that of the above."""
HEARD_SECONDS = 2.0
"""How long a server may take to say that it will tell of changes, before what it lets be read is
listed all the same: what it says so later than that is listed again."""

T = TypeVar("T")


class Part(StrEnum):
    """What a server lists by itself, and tells of when it changes."""

    TOOLS = "tools"
    RESOURCES = "resources"
    PROMPTS = "prompts"


_READABLE = (Part.RESOURCES, Part.PROMPTS)


class WhileOpen(Protocol):
    """Does something, but no longer than the connection can be used."""

    async def __call__(self, work: Coroutine[Any, Any, T], /) -> T:
        """Do it.

        Raises:
            ToolServerUnavailable: the connection can be used no more.
        """


class Offered:
    """What one server offers to whoever has this connection.

    Tools come first, and alone count: whatever goes wrong with the rest leaves all as it is.
    """

    def __init__(self, server: McpServer, *, tools_only: bool = False) -> None:
        """``tools_only``: nothing else is asked for."""
        self._server = server
        self._tools_only = tools_only
        self.is_asked_beside = False
        """Whether the server is being asked for something else than tools, or was at the end."""
        self.redactor = Redactor(server, Credential(), SHORTEST_PART)
        """Knows what is not to be kept of what the server says."""
        self.listing = Listing((), 0, "")
        self.readable = Readable()
        self._is_whole = asyncio.Event()
        self._changed: set[Part] = set()
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Have :meth:`keep` look at whether the connection has ended."""
        self._woken.set()

    def changed(self, *parts: Part) -> None:
        """These are others now."""
        self._changed.update(parts)
        self._woken.set()

    async def until_whole(self, seconds: float) -> None:
        """Return once everything was listed, or is not going to be, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_whole.wait()

    async def list_tools(self, line: Line) -> None:
        """Ask for the server's tools."""
        from app.tools.pool.calling import page_by  # noqa: PLC0415 - as in opening

        page = page_by(line.session.list_tools)
        self.listing = await list_within_bounds(page, self._server, self.redactor)
        self._tell(Part.TOOLS, self.listing.left_out)

    async def keep(self, line: Line, ended: asyncio.Future[Any], while_open: WhileOpen) -> None:
        """Ask for what the server lets be read, and again for whatever changes, until the end.

        Raises:
            ToolServerUnavailable: the connection can be used no more.
        """
        from app.tools.pool.calling import offered_parts, watch_changes  # noqa: PLC0415
        from app.tools.pool.pacing import Pace  # noqa: PLC0415 - as in opening

        watch = asyncio.create_task(
            watch_changes(line, self.changed), name="watch of a tool server"
        )
        pace = Pace(RELISTS_PER_SECOND, MOST_RELISTS)
        try:
            await self._hear(watch, ended)
            said = offered_parts(line)
            self.readable = Readable(*(None if part in said else () for part in _READABLE))
            offered = {Part.TOOLS} if self._tools_only else said | {Part.TOOLS}
            self.changed(*_READABLE)
            while not ended.done():
                self._woken.clear()
                parts, self._changed = self._changed & offered, set()
                for part in sorted(parts, reverse=True):  # tools first
                    await self._list_anew(part, line, while_open)
                self._is_whole.set()
                if parts:
                    await asyncio.wait({ended}, timeout=max(RELIST_SECONDS, pace.owed(1)))
                if not self._changed and not ended.done():
                    await self._woken.wait()
        finally:
            self._is_whole.set()
            await end_task(watch)

    async def _hear(self, watch: asyncio.Task[None], ended: asyncio.Future[Any]) -> None:
        """Wait until the server has promised to tell of changes: others it tells nobody of."""
        told = asyncio.create_task(self._woken.wait(), name="promise of a tool server")
        try:
            await asyncio.wait(
                {watch, told, ended}, timeout=HEARD_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            await end_task(told)

    async def _list_anew(self, part: Part, line: Line, while_open: WhileOpen) -> None:
        self.is_asked_beside = part is not Part.TOOLS
        try:
            async with asyncio.timeout(self._server.timeouts.listing):
                await while_open(self._list(part, line))
        except TimeoutError:  # it may be busy with a call: what was listed stays
            self.changed(part)
        except ToolServerUnavailable:
            raise
        except Exception as error:
            if part is Part.TOOLS:
                raise
            name = type(error).__name__
            log.info("not listed", what=part, server=self._server.log_name, error=name)
        self.is_asked_beside = False

    async def _list(self, part: Part, line: Line) -> None:
        from app.tools.pool.calling import page_by  # noqa: PLC0415 - as in opening

        match part:
            case Part.TOOLS:
                await self.list_tools(line)
            case Part.RESOURCES:
                page = page_by(line.session.list_resources)
                found = await each_page(page, lambda page: page.resources, MAX_LISTED)
                resources = resources_within_bounds(found, self.redactor)
                self.readable = replace(self.readable, resources=resources.listed)
                self._tell(part, resources.left_out)
            case Part.PROMPTS:
                pages = page_by(line.session.list_prompts)
                said = await each_page(pages, lambda page: page.prompts, MAX_LISTED)
                prompts = prompts_within_bounds(said, self.redactor)
                self.readable = replace(self.readable, prompts=prompts.listed)
                self._tell(part, prompts.left_out)

    def _tell(self, part: Part, left_out: int) -> None:
        if left_out:
            log.info("left out of a list", what=part, server=self._server.log_name, count=left_out)
