"""Where in a conversation a call of a tool stands: what its place in the ledger is made of."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallSite:
    """The message that makes a call, and the call in it. The same in every replay."""

    message_id: str
    tool_call_id: str


site_of_call: ContextVar[CallSite] = ContextVar("site_of_call")
"""Set by the agent around each call of a tool."""
