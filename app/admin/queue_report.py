"""The queues and pools as an operator reads them in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from app.admin.moment import shown
from app.admin.tables import section, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType
    from rich.table import Table

    from app.admin.queue_views import PoolView, QueueView


def queue_report(queue: QueueView) -> RenderableType:
    """The whole of it: runs, models, pools, people, and what waits longest."""
    runs = queue.runs
    return Group(
        Text(
            f"{shown(queue.at)}: {runs.running} running, {runs.queued} queued,"
            f" {runs.scheduled} scheduled, {runs.waiting} waiting for their person"
        ),
        *section(
            "Questions to people",
            ("kind", "open", "people", "oldest s"),
            (
                (each.kind, each.open, each.people, each.oldest_seconds)
                for each in queue.questions
                if each.open
            ),
        ),
        *section(
            "Models",
            ("model", "seats", "in use", "calls wait", "people wait", "call s", "vtime spread"),
            (
                (
                    *(each.model, each.capacity, each.in_use, each.waiting_calls),
                    *(each.waiting_users, each.call_seconds, each.vtime_spread),
                )
                for each in queue.models
            ),
        ),
        Text("\nPools", style="bold"),
        pools_table(queue.pools),
        *section(
            f"People: the {len(queue.users)} who wait longest",
            (
                *("user", "plan", "weight", "running", "queued", "seats", "calls wait"),
                *("longest s", "lag", "why"),
            ),
            (
                (
                    *(each.user_id, each.plan, each.weight, each.running, each.queued),
                    *(each.seats, each.waiting_calls, each.longest_wait_seconds, each.lag),
                    each.why,
                )
                for each in queue.users
            ),
        ),
        *section(
            f"Waiting: the {len(queue.waiting)} longest",
            ("run", "user", "for", "model", "priority", "since", "waited s", "why"),
            (
                (
                    *(each.run_id, each.user_id, each.waits_for, each.model, each.priority),
                    *(each.since, each.waited_seconds, each.why),
                )
                for each in queue.waiting
            ),
        ),
    )


def pools_table(pools: Iterable[PoolView]) -> Table:
    """The pools, one a row."""
    return table(
        ("pool", "model", "server", "state", "seats", "in use", "cooling", "set", "failing since"),
        (
            (
                *(each.pool, each.model, each.server, _state(each), each.capacity, each.in_use),
                *(each.cooling, each.set_capacity, each.failing_since),
            )
            for each in pools
        ),
    )


def _state(pool: PoolView) -> str:
    return f"{pool.state}: {pool.reason}" if pool.state == "failing" else pool.state
