"""Threads and states as clients see them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from app.runs.history import ThreadHistory
    from app.runs.threads import Thread
    from tenancy.principal import Principal

from tenancy.errors import ThreadNotFound

_AT_ONCE = 4


def thread_json(thread: Thread) -> dict[str, Any]:
    """A thread without what it holds."""
    return {
        "thread_id": str(thread.thread_id),
        "title": thread.title,
        "created_at": thread.created_at,
        "updated_at": thread.updated_at,
        "metadata": thread.metadata,
        "status": thread.status,
        "run_state": thread.run_state,
    }


def ttl_json(thread: Thread) -> dict[str, Any] | None:
    """How long a thread is kept; None: as others are."""
    if thread.ttl_minutes is None:
        return None
    return {
        "strategy": "delete",
        "ttl_minutes": thread.ttl_minutes,
        "expires_at": thread.expires_at,
    }


async def thread_with_values(
    history: ThreadHistory, principal: Principal, thread: Thread
) -> dict[str, Any]:
    """A thread with its newest values and open interrupts."""
    try:
        state = await history.state(principal, thread.thread_id)
    except ThreadNotFound:  # deleted since it was listed
        state = {}
    return {
        **thread_json(thread),
        "values": (state.get("values") or None) if state.get("created_at") else None,
        "interrupts": {
            task["id"]: task["interrupts"] for task in state.get("tasks", ()) if task["interrupts"]
        },
    }


async def threads_with_values(
    history: ThreadHistory, principal: Principal, threads: Sequence[Thread]
) -> AsyncIterator[dict[str, Any]]:
    """Threads as :func:`thread_with_values` gives each, a few read at once."""
    for start in range(0, len(threads), _AT_ONCE):
        some = threads[start : start + _AT_ONCE]
        for view in await asyncio.gather(
            *(thread_with_values(history, principal, thread) for thread in some)
        ):
            yield view


async def threads_alone(threads: Sequence[Thread]) -> AsyncIterator[dict[str, Any]]:
    """Threads as :func:`thread_json` gives each."""
    for thread in threads:
        yield thread_json(thread)


def selected(state: dict[str, Any], fields: Sequence[str] | None) -> dict[str, Any]:
    """The asked-for fields of a state; ``values.<key>`` is one key of its values."""
    if not fields:
        return state
    chosen = {name: state[name] for name in fields if name in state}
    keys = [name.partition(".")[2] for name in fields if name.startswith("values.")]
    values = state["values"]
    if keys and "values" not in chosen and isinstance(values, dict):
        chosen["values"] = {key: values[key] for key in keys if key in values}
    return chosen
