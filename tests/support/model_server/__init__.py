"""A real HTTP server that speaks Ollama's wire and does what a test scripts.

The client library under test cannot tell it from Ollama: loading, slots, pace, tool calls, and
every way in which an answer can go wrong.
"""

from tests.support.model_server.journal import RecordedRequest
from tests.support.model_server.script import Body, Script, Scripter, ToolCall, last_user_text
from tests.support.model_server.server import ScriptedModelServer

__all__ = [
    "Body",
    "RecordedRequest",
    "Script",
    "ScriptedModelServer",
    "Scripter",
    "ToolCall",
    "last_user_text",
]
