"""LangGraph's checkpoint and store tables behind the tenant door.

One saver and one store per run, bound to its user (and, in a worker, to its fence). The
library's SQL is kept; what is changed about it is in ``saver`` and ``store`` and pinned by tests.
"""

import os

# Read at langgraph's import: without it, a crafted row could call anything importable.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
