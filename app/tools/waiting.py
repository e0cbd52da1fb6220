"""Why a call has to wait for its person. It is no result and no failure: it is made again then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class MustWait(Exception):
    """A call cannot be made, or gone on with, before its person has said something."""


class NotApproved(MustWait):
    """A call needs an approval that it does not have, or that does not hold any more."""

    def __init__(self, changed: tuple[str, ...] = ()) -> None:
        super().__init__("the call is not approved")
        self.changed = changed
        """What is otherwise than when the person approved it, as stable codes: ``policy``,
        ``tool``, ``schema``, ``connection``, ``expired``, ``arguments``. Empty: not asked yet."""


class InDoubt(MustWait):
    """A call was begun, nobody knows what came of it, and it may not be repeated by itself."""

    def __init__(self, known: Mapping[str, Any], server: str, tool: str) -> None:
        super().__init__("nobody knows what came of the call")
        self.known = known
        """What is known, as the person is shown it: ``why`` (``timeout``: no answer came in time;
        ``unanswered``: the connection ended before one came; ``lost``: whoever waited for it is
        gone), ``started_at`` and ``sent`` (how often) where that is known, and ``changed`` where
        something has changed since that keeps it from being repeated."""
        self.server = server
        self.tool = tool
        """As its server calls it. The tool may not be offered any more."""
