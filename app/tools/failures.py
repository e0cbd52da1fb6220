"""How the way to a tool's server fails, as far as whoever calls must know."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.tools.servers import Unavailable


class ToolServerUnavailable(Exception):
    """A server cannot be used. Its text is a stable code, and says nothing of its insides."""

    def __init__(self, why: Unavailable) -> None:
        super().__init__(why.reason)
        self.why = why
