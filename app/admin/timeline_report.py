"""A run's timeline as an operator reads it in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from app.admin.moment import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from app.admin.timelines import Timeline


def timeline_report(timeline: Timeline) -> RenderableType:
    """The whole timeline: the run, its attempts, its steps, its log."""
    return Group(
        _pairs(_facts(timeline)),
        *_section(
            "Attempts",
            ("attempt", "fence", "worker", "host", "claimed", "ended", "how"),
            (
                (
                    *(each.attempt, each.fence, each.worker_id, each.host),
                    *(each.claimed_at, each.ended_at, each.ended_by),
                )
                for each in timeline.attempts
            ),
        ),
        *_questions(timeline),
        *_section(
            f"Checkpoints: {timeline.checkpoints.count}"
            f" ({timeline.checkpoints.root} of the graph, {timeline.checkpoints.sub}"
            f" in {timeline.checkpoints.namespaces} subgraph namespaces)",
            ("step", "written", "checkpoint"),
            ((each.step, each.at, each.checkpoint_id) for each in timeline.checkpoints.steps),
        ),
        *_section(
            f"Events: {sum(each.count for each in timeline.events)}",
            ("kind", "count", "bytes", "numbers", "first", "last"),
            (
                (
                    *(each.kind, each.count, each.bytes, f"{each.first_seq}-{each.last_seq}"),
                    *(each.first_at, each.last_at),
                )
                for each in timeline.events
            ),
        ),
    )


def _questions(timeline: Timeline) -> Iterable[RenderableType]:
    if timeline.questions:
        yield from _section(
            f"Questions to the person: {len(timeline.questions)}",
            ("kind", "asked", "expires", "state", "decision", "when", "approval"),
            (
                (
                    *(each.kind, each.asked_at, each.expires_at, each.state),
                    *(each.decision, each.decided_at, each.approval_id),
                )
                for each in timeline.questions
            ),
        )


def _facts(timeline: Timeline) -> Iterable[tuple[str, object]]:
    yield "run", timeline.run_id
    yield "tenant", timeline.tenant
    yield "thread", timeline.thread_id
    yield "graph", timeline.graph_id
    yield "request", timeline.request_id
    yield "state", timeline.state.value
    if timeline.error_code is not None:
        yield "error", timeline.error_code
    yield "strategy", timeline.multitask_strategy
    yield "fence", timeline.fence
    yield "attempts", f"{timeline.attempt} claimed, {timeline.attempts_spent} spent"
    yield "active", f"{timeline.active_seconds:.1f} s in attempts that ended"
    yield "accepted", timeline.created_at
    yield "last claimed", timeline.claimed_at
    if (calls := timeline.calls).begun:
        counts = (
            f"{calls.begun} begun, sent {calls.sent} times, {calls.late} answered late,"
            f" {calls.without_outcome} without an outcome"
        )
        yield "tool calls", counts
    if timeline.cancel_requested_at is not None:
        yield "cancel asked", f"{shown(timeline.cancel_requested_at)} ({timeline.cancel_action})"
    yield "ended", timeline.ended_at
    if (lease := timeline.lease) is not None:
        word = "over since" if lease.over else "until"
        draining = ", draining" if lease.draining else ""
        yield "lease", f"{word} {shown(lease.until)}, worker {lease.worker_id}{draining}"
    if timeline.pruned_at is not None:
        yield "log pruned", f"{shown(timeline.pruned_at)}, through {timeline.pruned_through}"
    if timeline.log_dropped_at is not None:
        yield "log dropped", timeline.log_dropped_at


def _pairs(facts: Iterable[tuple[str, object]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, shown(value))
    return table


def _section(
    title: str, columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]
) -> Iterable[RenderableType]:
    yield Text(f"\n{title}", style="bold")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(shown(value) for value in row))
    if table.row_count:
        yield table
