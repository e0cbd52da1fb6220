"""People as an operator reads them in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from app.admin.limits_report import said
from app.admin.tables import section, table
from app.admin.usage import Usage

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.admin.users_views import UserDetail, UserPage, UserSummary

_COLUMNS = (
    *("user", "state", "since", "created", "last seen", "threads", "runs", "open", "asked"),
    "bytes",
)


def users_report(page: UserPage) -> RenderableType:
    """A page of people, and how many there are."""
    return Group(
        table(_COLUMNS, (_row(user) for user in page.users)),
        Text(f"\n{len(page.users)} of {page.total} people"),
    )


def user_report(user: UserDetail) -> RenderableType:
    """One person: what there is of them, what they may use and have used."""
    parts: list[RenderableType] = [table(_COLUMNS, [_row(user)])]
    if user.erasure_id is not None:
        parts.append(Text(f"\nBeing erased: {user.erasure_id}"))
    kept = ((name, rows, user.sizes.get(name)) for name, rows in user.rows.items() if rows)
    parts.extend(section("Kept", ("table", "rows", "bytes"), kept))
    parts.extend(
        section(
            "Used",
            ("", "today", "this month"),
            (
                (name, getattr(user.used_today, name), getattr(user.used_this_month, name))
                for name in Usage.model_fields
            ),
        )
    )
    parts.append(Text(f"\nPlan {user.plan or '-'}, own limits: {said(user.limits) or '-'}"))
    parts.append(Text(f"In force: {said(user.effective)}"))
    return Group(*parts)


def _row(user: UserSummary) -> tuple[object, ...]:
    return (
        *(user.user_id, user.state, user.state_at, user.created_at, user.last_seen_at),
        *(user.threads, user.runs, user.open_runs, user.waiting_approvals, user.bytes),
    )
