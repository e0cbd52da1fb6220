"""Answers that come after their call's time was over: what is true of the world is recorded.

A call that may change anything is not taken back from its server when its time is over: it is
listened to a while longer, though its run has gone on to ask the person.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import structlog

from app.stopping import end_task
from app.tools.mcp.made import Made
from tenancy.database.engine import DatabaseUnavailable
from tenancy.errors import UserUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AsyncExitStack
    from uuid import UUID

    from app.tools.effects import Ending
    from app.tools.ledger import Ledger
    from app.tools.site import CallSite
    from tenancy.principal import ClaimedRun, UserId

log = structlog.get_logger(__name__)

LATE_SECONDS = 300.0
"""How much longer than its time a call is listened to."""
MOST = 256
MOST_OF_ONE = 16
"""How many calls are listened to at once: of this worker, of one person."""
END_SECONDS = 2.0
"""How long a server may take to hear that it is listened to no more."""


class LateAnswers:
    """One worker's calls whose time is over. Used on one event loop.

    Args:
        heard: is told of runs of which something was recorded, and whether they go on by it.
        seconds: how much longer than its time a call is listened to.
    """

    def __init__(
        self, heard: Callable[[ClaimedRun, bool], None], seconds: float = LATE_SECONDS
    ) -> None:
        self.seconds = seconds
        self._heard = heard
        self._listening: dict[asyncio.Task[None], UserId] = {}
        self._of: Counter[UserId] = Counter()

    def has_room(self, owner: UserId) -> bool:
        """Whether one more call of theirs is listened to."""
        return len(self._listening) < MOST and self._of[owner] < MOST_OF_ONE

    def listen(
        self,
        owner: UserId,
        answer: asyncio.Task[Any],
        lease: AsyncExitStack,
        record: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Hold on to a call until it ends by itself, and record what it is answered with.

        ``lease`` is its connection, and given back then.
        """
        task = asyncio.create_task(_listen(answer, lease, record), name="late answer of a tool")
        self._listening[task] = owner
        self._of[owner] += 1
        task.add_done_callback(self._over)

    async def record(
        self, ledger: Ledger, site: CallSite, key: UUID, ending: Ending, made: Made
    ) -> None:
        """Put an outcome on record that its run does not wait for any more."""
        try:
            goes_on = await ledger.record_late(site, key, ending, made.as_json())
        except (DatabaseUnavailable, UserUnavailable) as error:
            log.warning("a late outcome was not recorded", error=type(error).__name__)
            return
        if goes_on is not None:
            self._heard(ledger.run, goes_on)

    async def aclose(self) -> None:
        """Listen to nothing any more: what has not come by now stays in doubt."""
        for task in list(self._listening):
            await end_task(task, END_SECONDS)

    def _over(self, task: asyncio.Task[None]) -> None:
        owner = self._listening.pop(task)
        self._of[owner] -= 1
        if not self._of[owner]:
            del self._of[owner]


async def _listen(
    answer: asyncio.Task[Any], lease: AsyncExitStack, record: Callable[[Any], Awaitable[None]]
) -> None:
    async with lease:
        try:
            result = await answer
        except Exception:  # noqa: BLE001 - it has none, and whoever made it has said so
            return
        finally:
            await end_task(answer, END_SECONDS)
    await record(result)
