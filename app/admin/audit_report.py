"""The record as an operator reads it in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.admin.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from app.admin.audit_views import RecordEntry


def record_table(entries: Iterable[RecordEntry]) -> Table:
    """What is on record, the newest first. Whose reference has no id any more was erased."""
    return table(
        ("at", "actor", "action", "by", "user", "object", "run", "decision", "why", "route"),
        (
            (
                *(each.at, each.actor, each.action),
                each.account or each.by_user_id or each.by_reference,
                *(each.user_id or each.reference, each.object, each.run_id, each.decision),
                *(each.why, each.route),
            )
            for each in entries
        ),
    )
