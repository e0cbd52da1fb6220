"""For which places values are sealed. Changing one makes unreadable what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

CREDENTIAL = "connection"
"""The purpose of a connection's credential."""


def credential_field(connection_id: UUID, kind: str) -> str:
    """Which value it is: that of another connection, or of another kind, is another one."""
    return f"{connection_id}/{kind}"
