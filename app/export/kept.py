"""What is kept of a person: how much of which kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenancy.export.rows import OwnRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tenancy.database.tenant import TenantDatabase
    from tenancy.export.rows import TableSize
    from tenancy.principal import Owner

MOST_ROWS = 200_000
"""Of one table that are looked at: counting all of a million rows would take seconds."""

OTHER = "other"
KINDS: Mapping[str, tuple[str, ...]] = {
    "account": ("users", "identities", "audit_references", "user_limits"),
    "conversations": ("threads",),
    "runs": ("runs", "run_attempts", "run_queues", "idempotency_keys"),
    "events": ("run_events",),
    "checkpoints": ("checkpoints", "checkpoint_blobs", "checkpoint_writes"),
    "memories": ("store",),
    "connections": ("connections", "authorizations", "data_keys"),
    "tool_calls": ("effects",),
    "approvals": ("approvals",),
    "audit": ("audit", "audit_texts"),
    "usage": ("usage_hours", "request_rates", "model_users", "model_calls"),
}
"""The tables of each kind, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class KindSize:
    """How much there is of one kind."""

    kind: str
    rows: int
    """Of its tables together."""
    bytes: int
    """As they are stored."""
    is_whole: bool
    """Whether all was counted: else there is more."""


async def kept_of(database: TenantDatabase, owner: Owner) -> list[KindSize]:
    """How much of each kind is kept of a person.

    Raises:
        UserUnavailable: they are being erased.
    """
    return by_kind(await OwnRows(database).sizes(owner, most_rows=MOST_ROWS))


def by_kind(sizes: Iterable[TableSize]) -> list[KindSize]:
    """Tables' sizes added up by kind; what belongs to none is of another. Pure."""
    left = {size.table: size for size in sizes}
    kinds = [
        _together(kind, [left.pop(table) for table in tables if table in left])
        for kind, tables in KINDS.items()
    ]
    return [*kinds, *([_together(OTHER, list(left.values()))] if left else ())]


def _together(kind: str, sizes: Sequence[TableSize]) -> KindSize:
    return KindSize(
        kind,
        sum(size.rows for size in sizes),
        sum(size.bytes for size in sizes),
        all(size.is_whole for size in sizes),
    )
