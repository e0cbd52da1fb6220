"""What a site's ``robots.txt`` lets a robot fetch (RFC 9309)."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import httpx2
from protego import Protego

from app.outbound import AnswerBroken, AnswerTooLarge, Origin, TimedOut, UrlRefused
from app.tools.builtin.following import following
from app.tools.refusal import ToolRefusal

LARGEST = 512 * 1024
_LARGEST_KEPT = 64 * 1024
_MOST_PAIRS = 500_000
_AGENT_LINE = re.compile(r"^[ \t]*user.?agent", re.IGNORECASE | re.MULTILINE)
_NOTHING = ""

MayVisit = Callable[[str], bool]
"""Whether an address is one to go to."""


@dataclass(slots=True)
class RobotsMemory:
    """What was read lately. Whose visit it was is part of the key: nobody sees another's traces."""

    seconds: float = 3600.0
    most: int = 256
    _known: OrderedDict[Hashable, tuple[float, str]] = field(default_factory=OrderedDict)

    def get(self, key: Hashable) -> str | None:
        """The text, if it is young enough."""
        until, text = self._known.get(key, (0.0, ""))
        return text if until > asyncio.get_running_loop().time() else None

    def put(self, key: Hashable, text: str) -> None:
        """Keep a text of usual length."""
        if len(text) > _LARGEST_KEPT:
            return
        self._known[key] = (asyncio.get_running_loop().time() + self.seconds, text)
        self._known.move_to_end(key)
        while len(self._known) > self.most:
            self._known.popitem(last=False)


class Robots:
    """Asks sites whether they may be visited, on behalf of one visitor."""

    def __init__(self, memory: RobotsMemory, visitor: Hashable, agent: str) -> None:
        self._memory = memory
        self._visitor = visitor
        self._agent = agent

    async def require_permission(
        self, client: httpx2.AsyncClient, url: str, trusted: frozenset[str], may_visit: MayVisit
    ) -> None:
        """Return if the site lets this be fetched. What it says is looked for where one may visit.

        Raises:
            ToolRefusal: it does not, or cannot say so now.
            OutboundError: the site cannot be reached.
        """
        origin = str(Origin.of(url))
        key = (self._visitor, origin)
        text = self._memory.get(key)
        if text is None:
            text = await _read(client, f"{origin}/robots.txt", trusted, may_visit)
            self._memory.put(key, text)
        if not await asyncio.to_thread(_allows, text, url, self._agent):
            raise ToolRefusal("The site does not let robots fetch this (robots.txt).")


async def _read(
    client: httpx2.AsyncClient, url: str, trusted: frozenset[str], may_visit: MayVisit
) -> str:
    """The file; everything is allowed where there is none, nothing where that cannot be known."""

    async def before(hop: str) -> None:
        if not may_visit(hop):
            raise UrlRefused("The address is not one to go to.")

    try:
        async with following(client, url, trusted=trusted, before=before) as response:
            if response.is_success:
                return await _beginning(response)
            return _NOTHING if response.is_client_error else _unknown()
    except (AnswerBroken, AnswerTooLarge, TimedOut):
        return _unknown()
    except UrlRefused:  # led somewhere that is not asked: as if it were not there
        return _NOTHING


def _unknown() -> str:
    raise ToolRefusal("The site cannot say now whether robots may fetch this (robots.txt).")


async def _beginning(response: httpx2.Response) -> str:
    """As much of it as is read: what comes later does not count."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) >= LARGEST:
            break
    return body[:LARGEST].decode("utf-8", "replace")


def _allows(text: str, url: str, agent: str) -> bool:
    # The library keeps every rule once for each robot that it is for.
    agents = len(_AGENT_LINE.findall(text))
    if agents * (text.count("\n") + text.count("\r")) > _MOST_PAIRS:
        return False
    return Protego.parse(text).can_fetch(url, agent)
