"""A person's connections as they are stored: each function is one call in its own transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tenancy.vault.data_keys import WrappedKey

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

AuthKind = Literal["none", "key", "oauth"]
StoredKind = Literal["key", "oauth"]
StoredState = Literal["unknown", "available", "unavailable", "needs_key", "needs_authorization"]
Dropping = Literal["forget", "disconnect", "remove"]
Refresh = Literal["yours", "others", "changed"]
FIRST_VERSION = 1
"""Of an operator's server that has no row yet, and of its credential."""

_COLUMNS = """
    connection_id, server, url, auth, header, enabled, version, credential_kind, expires_at,
    state, reason, listing, listing_version, listed_for, listed_at, check_wanted_at, updated_at,
    approval, approval_version, grant_version, standing_version, failing_since, readable,
    failing_reason
"""
_READ_ALL = f"SELECT {_COLUMNS} FROM tenant.read_connections($1, $2)"  # noqa: S608 - columns
_READ = f"SELECT {_COLUMNS} FROM tenant.read_connection($1, $2)"  # noqa: S608 - columns
_READ_CREDENTIAL = "SELECT * FROM tenant.read_credential($1, $2)"
_ADD = "SELECT tenant.add_connection($1, $2, $3, $4, $5, $6)"
_STORE = "SELECT tenant.store_connection($1, $2, $3)"
_SAY_APPROVAL = "SELECT tenant.say_approval($1, $2, $3, $4)"
_WANT_CHECK = "SELECT tenant.want_check($1, $2, $3, $4)"
_DROP = "SELECT * FROM tenant.drop_credential($1, $2, $3, $4)"
_KEEP = "SELECT tenant.keep_credential($1, $2, $3, $4, $5, $6, $7)"
_BEGIN_REFRESH = "SELECT tenant.begin_refresh($1, $2, $3, $4)"
_END_REFRESH = "SELECT tenant.end_refresh($1, $2, $3, $4)"
_STORE_LISTING = "SELECT tenant.store_listing($1, $2, $3, $4, $5, $6, $7, $8, $9)"
_FINISH_CHECK = "SELECT tenant.finish_check($1, $2, $3, $4, $5, $6, $7, $8, $9)"


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    """A stored connection, without its credential."""

    connection_id: UUID
    server: str
    url: str | None
    auth: AuthKind | None
    header: str | None
    enabled: bool
    version: int
    credential_kind: StoredKind | None
    expires_at: datetime | None
    state: StoredState
    reason: str | None
    listing: Sequence[dict[str, Any]] | None = field(repr=False)
    listing_version: str | None
    listed_for: int | None
    listed_at: datetime | None
    check_wanted_at: datetime | None
    updated_at: datetime
    approval: Mapping[str, str]
    """When the person wants to be asked before the server's tools are called, by their names."""
    approval_version: int
    grant_version: int
    """Grows when the person gives or takes a credential, and not when one is renewed."""
    standing_version: int
    """Grows whenever it stands otherwise."""
    failing_since: datetime | None
    """None unless it does not work, or did not when it was last spoken to."""
    readable: Mapping[str, Sequence[dict[str, Any]]] | None = field(repr=False)
    """What it lets be read, by the part; listed for whom the tools were."""
    failing_reason: str | None
    """Why not, at first."""


@dataclass(frozen=True, slots=True)
class SealedCredential:
    """A credential as it is stored, with the data key that it opens with."""

    connection_id: UUID
    kind: StoredKind | None
    sealed: bytes | None = field(repr=False)
    keys: tuple[WrappedKey, ...]


@dataclass(frozen=True, slots=True)
class StoredCredential(SealedCredential):
    """The same, and what is known of its connection."""

    version: int
    url: str | None
    enabled: bool
    expires_in: float | None
    """Seconds, by the database's clock."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a server stood when it was last spoken to."""

    state: StoredState
    reason: str | None = None
    listing: list[dict[str, Any]] | None = field(default=None, repr=False)
    listing_version: str | None = None
    readable: dict[str, Any] | None = field(default=None, repr=False)


class ConnectionRows:
    """Reads and changes a person's connections."""

    def __init__(self, database: TenantDatabase) -> None:
        self._database = database

    async def all(self, owner: Owner) -> list[ConnectionRow]:
        """Everything that is stored of a person's connections, by the servers' names."""
        rows = await self._database.call(owner, _READ_ALL, None)
        return [ConnectionRow(**row) for row in rows]

    async def of_server(self, owner: Owner, server: str) -> ConnectionRow | None:
        """What is stored of the connection to one server."""
        rows = await self._database.call(owner, _READ_ALL, server)
        return ConnectionRow(**rows[0]) if rows else None

    async def by_id(self, owner: Owner, connection_id: UUID) -> ConnectionRow | None:
        """The connection of an id."""
        rows = await self._database.call(owner, _READ, connection_id)
        return ConnectionRow(**rows[0]) if rows else None

    async def credential(self, owner: Owner, server: str) -> StoredCredential | None:
        """A server's credential, still sealed; None where nothing is stored of it."""
        rows = await self._database.call(owner, _READ_CREDENTIAL, server)
        if not rows:
            return None
        row = rows[0]
        return StoredCredential(
            connection_id=row["connection_id"],
            kind=row["credential_kind"],
            sealed=row["credential"],
            keys=_data_keys(row),
            version=row["version"],
            url=row["url"],
            enabled=row["enabled"],
            expires_in=row["expires_in"],
        )

    async def add(
        self, owner: Owner, server: str, url: str, auth: AuthKind, header: str | None, *, most: int
    ) -> Literal["added", "exists", "too_many"]:
        """Add a server of the person's own, of which there may be so many."""
        arguments = (server, url, auth, header, most)
        (row,) = await self._database.call(owner, _ADD, *arguments)
        outcome: Literal["added", "exists", "too_many"] = row[0]
        return outcome

    async def store(self, owner: Owner, server: str, *, own: bool) -> UUID | None:
        """The id that a server's connection is stored under, from now on."""
        (row,) = await self._database.call(owner, _STORE, server, own)
        connection_id: UUID | None = row[0]
        return connection_id

    async def say_approval(
        self, owner: Owner, server: str, rules: Mapping[str, str], *, own: bool
    ) -> UUID | None:
        """Keep when the person wants to be asked; None where there is no server of that kind."""
        (row,) = await self._database.call(owner, _SAY_APPROVAL, server, own, dict(rules))
        connection_id: UUID | None = row[0]
        return connection_id

    async def want_check(
        self, owner: Owner, server: str, *, own: bool, anew: bool = False
    ) -> UUID | None:
        """Put a server into use and ask for a look at it; None where there is none of that kind."""
        (row,) = await self._database.call(owner, _WANT_CHECK, server, own, anew)
        connection_id: UUID | None = row[0]
        return connection_id

    async def drop(
        self, owner: Owner, server: str, how: Dropping, *, own: bool
    ) -> SealedCredential | None:
        """Take a credential away, and what was known by it; return what there was."""
        rows = await self._database.call(owner, _DROP, server, own, how)
        if not rows:
            return None
        row = rows[0]
        return SealedCredential(
            row["connection_id"], row["credential_kind"], row["credential"], _data_keys(row)
        )

    async def keep(
        self,
        owner: Owner,
        connection_id: UUID,
        kind: StoredKind,
        sealed: bytes,
        *,
        expires_in: float | None,
        expected_version: int | None,
        refreshed: bool,
    ) -> Literal["kept", "changed", "reseal"]:
        """Keep a sealed credential, if the connection is still of the version that is expected."""
        arguments = (connection_id, kind, sealed, expires_in, expected_version, refreshed)
        (row,) = await self._database.call(owner, _KEEP, *arguments)
        outcome: Literal["kept", "changed", "reseal"] = row[0]
        return outcome

    async def begin_refresh(
        self, owner: Owner, connection_id: UUID, version: int, seconds: float
    ) -> Refresh:
        """Ask for the right to refresh a credential, which lasts so many seconds."""
        (row,) = await self._database.call(owner, _BEGIN_REFRESH, connection_id, version, seconds)
        outcome: Refresh = row[0]
        return outcome

    async def end_refresh(
        self, owner: Owner, connection_id: UUID, version: int, *, lost: bool
    ) -> bool:
        """Give that right back; with ``lost``, the credential is of no use any more.

        False where the connection is of another version by now.
        """
        (row,) = await self._database.call(owner, _END_REFRESH, connection_id, version, lost)
        return bool(row[0])

    async def store_listing(
        self, owner: Owner, server: str, version: int, standing: Standing, *, own: bool
    ) -> UUID | None:
        """Note how a server stood under a version; the connection, where that is news."""
        arguments = (server, own, version, *_said(standing))
        (row,) = await self._database.call(owner, _STORE_LISTING, *arguments)
        connection_id: UUID | None = row[0]
        return connection_id

    async def finish_check(
        self, owner: Owner, row: ConnectionRow, version: int, standing: Standing
    ) -> bool:
        """The same for a check that was asked for; False where the connection is gone."""
        arguments = (row.connection_id, row.check_wanted_at, version, *_said(standing))
        (found,) = await self._database.call(owner, _FINISH_CHECK, *arguments)
        return bool(found[0])


def _said(standing: Standing) -> tuple[Any, ...]:
    listed = (standing.listing, standing.listing_version, standing.readable)
    return standing.state, standing.reason, *listed


def _data_keys(row: Any) -> tuple[WrappedKey, ...]:  # noqa: ANN401 - asyncpg has no types
    if row["key_version"] is None:
        return ()
    return (WrappedKey(row["key_version"], row["wrapping_key"], row["wrapped"]),)
