"""Exports under way in this process: one of each person's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tenancy.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenancy.principal import UserId


class ExportRunning(Conflict):
    """Everything of the person is being exported already."""

    code = "export_running"
    message = "An export is under way already. Wait for its end, or break it off."


class OngoingExports:
    """Lets each person have one export at a time."""

    def __init__(self) -> None:
        self._whose: set[UserId] = set()

    @contextmanager
    def held(self, user_id: UserId) -> Iterator[None]:
        """Hold the one export that a person may have under way.

        Raises:
            ExportRunning: there is one.
        """
        if user_id in self._whose:
            raise ExportRunning
        self._whose.add(user_id)
        try:
            yield
        finally:
            self._whose.discard(user_id)
