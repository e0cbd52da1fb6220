"""Checkpoint ids that no host's clock can put in the wrong order.

A thread's newest checkpoint is the one with the greatest id, and the library makes ids from the
clock of the host. A host whose clock is behind would write states that are older than the one it
went on from, and nobody would ever see them. So whoever reads a checkpoint moves the library's own
"last timestamp" past it: a logical clock, as in Kulkarni et al., "Logical Physical Clocks" (2014).
"""

from __future__ import annotations

import uuid

from langgraph.checkpoint.base import id as library

_VERSION = 6

if not hasattr(library, "_last_v6_timestamp"):
    raise ImportError("langgraph-checkpoint has changed how it makes ids")


def observe(checkpoint_id: str) -> None:
    """Make every id from now on, in this process, greater than this one."""
    try:
        seen = library.UUID(checkpoint_id)
    except ValueError:
        return  # not made by the library: it has no time to go by
    if uuid.UUID(checkpoint_id).version != _VERSION:
        return
    last: int | None = library._last_v6_timestamp  # noqa: SLF001 - its only way to be told
    if last is None or last < seen.time:
        library._last_v6_timestamp = seen.time  # type: ignore[assignment]  # noqa: SLF001
