"""The graphs: the built-in agent, and the operator's own."""

import os

# Read at langgraph's import: without it, a crafted checkpoint row could call anything importable.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

# Before anything asks LangSmith whether to trace: it remembers the answer.
from app.agent.tracing import TRACING_ASKED_FOR as TRACING_ASKED_FOR

# isort: split
from app.agent.model import service_model as service_model
