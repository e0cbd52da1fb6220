"""The graphs: the built-in agent, and the operator's own."""

import os

# Read at langgraph's import: without it, a crafted checkpoint row could call anything importable.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

from app.agent.model import service_model as service_model
