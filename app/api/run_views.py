"""Runs as clients see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.runs.states import wire_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.runs.runs import Run, RunRequest


def run_json(
    run: Run, select: Sequence[str] | None = None, request: RunRequest | None = None
) -> dict[str, Any]:
    """A run; with ``select``, the fields that were asked for.

    ``kwargs`` comes only when asked for, and needs the ``request``: it repeats the whole input.
    """
    view = {
        "run_id": str(run.run_id),
        "thread_id": str(run.thread_id),
        "assistant_id": str(run.assistant_id),
        "graph_id": run.graph_id,
        "created_at": run.created_at,
        "updated_at": run.updated_at,
        "status": wire_status(run.state),
        "state": run.state,
        "attempt": run.attempt,
        "metadata": run.metadata,
        "multitask_strategy": run.multitask_strategy,
        "priority": run.priority,
        "due_at": run.due_at,
        "error": _error_json(run),
        "cancel_requested_at": run.cancel_requested_at,
    }
    if not select:
        return view
    if request is not None:
        view["kwargs"] = request.as_json()
    return {name: view[name] for name in select}


def _error_json(run: Run) -> dict[str, str | None] | None:
    if run.error_code is None:
        return None
    return {"code": run.error_code, "message": run.error_message}
