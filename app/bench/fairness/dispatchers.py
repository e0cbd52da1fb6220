"""What is compared with: first come first served, and one after the other by user.

Each is a queue in this process, with as many seats. Nothing bounds how many one user may have.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from typing import TYPE_CHECKING
from uuid import uuid4

from app.models.seats import HeldSeat
from tenancy.scheduler.seats import Seat

if TYPE_CHECKING:
    from app.models.usage import Usage
    from tenancy.principal import ClaimedRun, UserId
    from tenancy.scheduler.seats import PoolFailure

Turn = asyncio.Future[None]


class LocalSeats(ABC):
    """So many seats, given to who is next in a queue."""

    def __init__(self, seat: Seat, seats: int) -> None:
        self._seat = seat
        self._free = seats

    async def take(self, run: ClaimedRun, model: str) -> HeldSeat:
        """Wait for a seat."""
        turn: Turn = asyncio.get_running_loop().create_future()
        self._queue(run.user_id, turn)
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back()
            raise
        return HeldSeat(run, uuid4(), model, self._seat)

    def settle(
        self,
        held: HeldSeat,  # noqa: ARG002 - as everybody who gives out seats
        usage: Usage,  # noqa: ARG002
        failure: PoolFailure | None = None,  # noqa: ARG002
    ) -> asyncio.Future[None]:
        """Give a seat back."""
        self._give_back()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def _give_back(self) -> None:
        self._free += 1
        self._serve()

    def _serve(self) -> None:
        while self._free and (turn := self._next()) is not None:
            if not turn.cancelled():
                self._free -= 1
                turn.set_result(None)

    @abstractmethod
    def _queue(self, user: UserId, turn: Turn) -> None: ...

    @abstractmethod
    def _next(self) -> Turn | None: ...


class FirstComeSeats(LocalSeats):
    """First come, first served."""

    def __init__(self, seat: Seat, seats: int) -> None:
        super().__init__(seat, seats)
        self._turns: deque[Turn] = deque()

    def _queue(self, user: UserId, turn: Turn) -> None:  # noqa: ARG002 - all are alike
        self._turns.append(turn)

    def _next(self) -> Turn | None:
        return self._turns.popleft() if self._turns else None


class RoundRobinSeats(LocalSeats):
    """One call of each user in turn."""

    def __init__(self, seat: Seat, seats: int) -> None:
        super().__init__(seat, seats)
        self._turns: OrderedDict[UserId, deque[Turn]] = OrderedDict()

    def _queue(self, user: UserId, turn: Turn) -> None:
        self._turns.setdefault(user, deque()).append(turn)

    def _next(self) -> Turn | None:
        if not self._turns:
            return None
        user, turns = self._turns.popitem(last=False)
        turn = turns.popleft()
        if turns:
            self._turns[user] = turns
        return turn
