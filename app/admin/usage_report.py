"""Usage as an operator reads it in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from app.admin.moment import shown
from app.admin.tables import section

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.admin.usage import Usage, UsageOfAll

_COLUMNS = (
    *("prompt tokens", "output tokens", "calls", "runs", "tool calls"),
    *("seat s", "wait s", "longest wait s"),
)


def usage_report(usage: UsageOfAll) -> RenderableType:
    """Totals, the hours or days in which something was used, and who used most."""
    return Group(
        Text(f"{shown(usage.begin)} to {shown(usage.end)}"),
        *section("Total", _COLUMNS, [_numbers(usage.total)]),
        *section(
            f"By {usage.bucket}",
            ("from", *_COLUMNS),
            ((each.start, *_numbers(each)) for each in usage.buckets if any(_numbers(each))),
        ),
        *section(
            "By person, most tokens first",
            ("user", *_COLUMNS),
            ((each.user_id, *_numbers(each)) for each in usage.users),
        ),
    )


def _numbers(usage: Usage) -> tuple[float, ...]:
    return (
        *(usage.prompt_tokens, usage.output_tokens, usage.calls, usage.runs, usage.tool_calls),
        *(usage.seat_seconds, usage.wait_seconds, usage.longest_wait_seconds),
    )
