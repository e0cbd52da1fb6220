"""What a person has allowed for the rest of a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

    from app.tools.approval.ruling import Ruling
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

_FIND = "SELECT tenant.find_permission($1, $2, $3, $4, $5, $6)"


class ThreadPermissions:
    """The decisions that opened one thread, as one of its runs asks for them."""

    def __init__(self, database: TenantDatabase, owner: Owner, thread_id: UUID) -> None:
        self._database = database
        self._owner = owner
        self._thread_id = thread_id

    async def find(self, server: str | None, tool: str, ruling: Ruling) -> UUID | None:
        """The approval by which a call is made under this ruling without asking; None: none.

        ``tool`` is the name that its server has for it.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        about = (server, tool, ruling.subject, ruling.version)
        (row,) = await self._database.call(self._owner, _FIND, self._thread_id, *about)
        found: UUID | None = row[0]
        return found
