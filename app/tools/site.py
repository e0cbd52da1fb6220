"""Where in a conversation a call of a tool stands: what its place in the ledger is made of."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID


@dataclass(frozen=True, slots=True)
class CallSite:
    """The message that makes a call, and the call in it. The same in every replay."""

    message_id: str
    tool_call_id: str
    arguments_sha256: bytes = b""
    """Of the call's arguments as they stand in the message; see ``app.tools.fingerprint``."""
    approval: UUID | None = None
    """The approval that lets the call be made: its own, or one that opened its thread for it."""
    doubt: UUID | None = None
    """What the person was asked when nobody knew what had come of the call."""


site_of_call: ContextVar[CallSite] = ContextVar("site_of_call")
"""Set by the agent around each call of a tool."""
