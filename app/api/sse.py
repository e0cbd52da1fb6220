"""The stream's wire form: server-sent events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson

from app.api.refusals import MalformedRequest
from app.runs.states import wire_status

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from app.runs.events import StoredEvent
    from tenancy.run_states import RunState

MEDIA_TYPE = "text/event-stream"
EVENT_SCHEMA = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"type": "string", "examples": ["metadata", "values", "messages", "end"]},
        "data": {"type": "string", "description": "One line of JSON."},
        "id": {"type": "string", "description": "The place in the log; `end` has none."},
    },
}
HEARTBEAT = b": heartbeat\n\n"

_ALWAYS = frozenset({"metadata", "stopping", "error"})
_DELTAS = frozenset({"messages", "messages-tuple"})
_EVENT_ID = re.compile(r"-1|0|[1-9][0-9]{0,8}")


def event_frame(event: StoredEvent, event_id: str) -> bytes:
    """A stored event as one frame; its data is one line already."""
    parts = (event.event.encode(), event.data, event_id.encode())
    return b"event: %b\ndata: %b\nid: %b\n\n" % parts


def end_frame(run_id: UUID, state: RunState, _last: int = 0) -> bytes:
    """The end of a run's stream. It has no id: it is not in the log."""
    data = {"run_id": str(run_id), "status": wire_status(state)}
    return b"event: end\ndata: %b\n\n" % orjson.dumps(data)


def gap_frame(asked_after: int, continues_after: int, event_id: str, **why: int) -> bytes:
    """Says that events after an id were asked for that the log has not, and where it goes on."""
    data = {"asked_after": asked_after, "continues_after": continues_after, **why}
    return b"event: gap\ndata: %b\nid: %b\n\n" % (orjson.dumps(data), event_id.encode())


def state_frame(values: bytes) -> bytes:
    """A thread's present values, outside the log."""
    return b"event: values\ndata: %b\n\n" % values


def error_frame(code: str, message: str) -> bytes:
    """Why there is no more to come."""
    data = {"error": code, "message": message}
    return b"event: error\ndata: %b\n\n" % orjson.dumps(data)


def is_wanted(event: str, modes: Collection[str] | None) -> bool:
    """Say whether an event belongs to one of the modes; without modes, all do."""
    name = event.partition("|")[0]
    if modes is None or name in _ALWAYS:
        return True
    if name == "messages":
        return "messages-tuple" in modes
    return name.partition("/")[0] in modes


def wants_deltas(modes: Collection[str] | None) -> bool:
    """Say whether the pieces that messages come in belong to one of the modes."""
    return modes is None or not _DELTAS.isdisjoint(modes)


def parse_last_event_id(value: str | None) -> int:
    """The position after which to read; ``-1`` and nothing mean from the beginning.

    Raises:
        MalformedRequest: it is not an id that a stream of ours has.
    """
    if value is None or value == "":
        return 0
    if not _EVENT_ID.fullmatch(value):
        raise MalformedRequest("Last-Event-ID is not an id of this stream.")
    return max(int(value), 0)
