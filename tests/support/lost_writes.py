"""Writes of a checkpoint saver's that fail for good, as they do where a worker dies."""

from __future__ import annotations

from typing import Any

import pytest

from tenancy.database.retry import while_database_is_away
from tenancy.errors import LeaseLost, StoaError


class FailsOnce:
    """Fails at one call, counted from 0, and otherwise does what it stands for."""

    def __init__(self, real: Any, at: int, error: StoaError, *, is_done: bool = False) -> None:
        self._real = real
        self._left = at
        self._error = error
        self._is_done = is_done

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._left -= 1
        if self._left != -1:
            return await self._real(*args, **kwargs)
        if self._is_done:
            await self._real(*args, **kwargs)
        raise self._error


def lose_a_write(
    monkeypatch: pytest.MonkeyPatch,
    at: int = 0,
    error: StoaError | None = None,
    *,
    is_committed: bool = False,
) -> None:
    """Let one of the saver's writes fail for good, so that the run is given back.

    ``is_committed``: it was stored, and only nobody heard of that.
    """
    failing = FailsOnce(while_database_is_away, at, error or LeaseLost(), is_done=is_committed)
    monkeypatch.setattr("tenancy.checkpoints.saver.while_database_is_away", failing)
