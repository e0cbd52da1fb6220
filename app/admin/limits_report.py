"""Limits and plans as an operator reads them in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from app.admin.moment import shown
from app.admin.tables import section, table
from tenancy.scheduler.limits import RULES

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.admin.limits_views import LimitValues, PlansView, UserLimits

_UNLIMITED = "no limit"


def limits_report(limits: UserLimits) -> RenderableType:
    """What a person may use, and where it comes from."""
    return Group(
        Text(f"{limits.user_id}: plan {limits.plan or '-'}, set {shown(limits.updated_at)}"),
        table(
            ("limit", "in force", "own", "unit", "means"),
            (
                (
                    *(name, _value(limits.effective, name), _value(limits.limits, name)),
                    *(rule.unit, rule.meaning),
                )
                for name, rule in RULES.items()
            ),
        ),
    )


def plans_report(plans: PlansView) -> RenderableType:
    """Every plan, and which limits there are."""
    return Group(
        *section(
            "Plans",
            ("plan", "people", "limits"),
            ((each.plan, each.users, said(each.limits)) for each in plans.plans),
        ),
        *section(
            "Limits",
            ("limit", "from", "to", "by default", "unit", "means"),
            (
                (
                    *(rule.name, rule.least, rule.most),
                    _UNLIMITED if rule.default is None else rule.default,
                    *(rule.unit, rule.meaning),
                )
                for rule in plans.rules
            ),
        ),
    )


def said(limits: LimitValues) -> str:
    """Limits on one line, as they are given on the command line."""
    return " ".join(
        f"{name}={'none' if value is None else shown(value)}" for name, value in limits.items()
    )


def _value(limits: LimitValues, name: str) -> object:
    if name not in limits:
        return None
    return _UNLIMITED if limits[name] is None else limits[name]
