"""LangGraph's checkpoint and store tables behind the tenant door.

One saver and one store per run, bound to its user (and, in a worker, to its fence). The
library's SQL is kept; what is changed about it is in ``saver`` and ``store`` and pinned by tests.
"""

import os

# Read at langgraph's import: without it, a crafted row could call anything importable.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

from langgraph.checkpoint.serde import _msgpack


def assert_strict_deserialization() -> None:
    """Make sure that what a checkpoint row says cannot choose which code runs.

    Raises:
        RuntimeError: langgraph was imported before, or the variable says otherwise.
    """
    if not _msgpack.STRICT_MSGPACK_ENABLED:
        raise RuntimeError(
            "LANGGRAPH_STRICT_MSGPACK must be `true` before langgraph is first imported."
        )


# Every process that serves people imports this room first; none starts without.
assert_strict_deserialization()
