"""Erasures as an operator reads them in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from app.admin.tables import section, table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from rich.console import RenderableType

    from app.erasure.views import ErasureView

_COLUMNS = ("erasure", "state", "asked for", "by", "ended", "rows", "left", "failure")


def erasures_report(erasures: Sequence[ErasureView]) -> RenderableType:
    """One line for each."""
    if not erasures:
        return Text("There are none.")
    return table(
        _COLUMNS,
        (
            (
                each.erasure_id,
                each.state,
                each.requested_at,
                each.requested_by,
                each.ended_at,
                sum(each.deleted.values()),
                None if each.remaining is None else sum(each.remaining.values()),
                each.failure,
            )
            for each in erasures
        ),
    )


def erasure_report(erasure: ErasureView, awaited: Sequence[UUID] = ()) -> RenderableType:
    """The whole of one but its receipt, with the workers that it waits for."""
    counts = (
        ("step", erasure.step),
        ("keys destroyed", erasure.keys_destroyed),
        ("tokens given back", erasure.tokens_revoked),
        ("tokens that could not be", erasure.tokens_not_revoked),
        ("folders deleted", erasure.folders_deleted),
        ("verified", erasure.verified_at),
    )
    left = erasure.remaining or {}
    names = sorted({*erasure.deleted, *(name for name, rows in left.items() if rows)})
    return Group(
        erasures_report([erasure]),
        *section("Beside rows", ("what", "how many"), counts),
        *(section("Waits for", ("worker",), ((each,) for each in awaited)) if awaited else ()),
        *(
            section(
                "Rows",
                ("table", "deleted", "left"),
                ((name, erasure.deleted.get(name, 0), left.get(name)) for name in names),
            )
            if names
            else ()
        ),
    )
