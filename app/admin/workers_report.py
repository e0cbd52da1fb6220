"""Workers as an operator reads them in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.admin.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from app.admin.workers_views import WorkerView


def workers_table(workers: Iterable[WorkerView]) -> Table:
    """Every worker, the eldest first; times in seconds."""
    return table(
        ("worker", "host", "pid", "state", "runs", "seats", "lease", "age"),
        (
            (
                *(each.worker_id, each.host, each.pid, _state(each), each.runs, each.seats),
                *(each.lease_seconds, each.age_seconds),
            )
            for each in workers
        ),
    )


def _state(worker: WorkerView) -> str:
    if worker.lease_seconds <= 0:
        return "dead"
    return "draining" if worker.draining else "at work"
