"""From what LangGraph streams to the events of the wire. Pure: no clock, no database.

A part is ``(namespace, mode, data)``. Text deltas of one message are merged until they are
flushed, and of the older mode's growing messages only the newest is kept; everything else is
frozen to bytes at once, because a graph may change what it emitted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessageChunk, BaseMessage, message_chunk_to_message

from app.runs.events import Event
from app.runs.wire import message_json, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langgraph.types import StreamMode

Part = tuple[tuple[str, ...], str, Any]

_SAFE_CHECKPOINT_KEYS = ("thread_id", "checkpoint_ns", "checkpoint_id")


def langgraph_modes(modes: Iterable[str]) -> list[StreamMode]:
    """The modes that LangGraph must stream so that the wished-for events can be made."""
    wanted = ["messages" if mode == "messages-tuple" else mode for mode in modes]
    return cast("list[StreamMode]", list(dict.fromkeys(wanted)))


@dataclass(slots=True)
class _Delta:
    """Chunks of one message that were not flushed yet."""

    event: str
    message: AIMessageChunk
    metadata: dict[str, Any]

    def takes(self, event: str, chunk: BaseMessage) -> bool:
        return (
            self.event == event
            and isinstance(chunk, AIMessageChunk)
            and chunk.id is not None
            and chunk.id == self.message.id
        )

    def frozen(self) -> Event:
        return Event(self.event, to_json([self.message, self.metadata]))


@dataclass(slots=True)
class _Partial:
    """A message as far as it has come, not flushed yet."""

    suffix: str
    message: AIMessageChunk

    def tells(self, key: tuple[str, str]) -> bool:
        return key == (self.suffix, self.message.id or "")

    def frozen(self) -> Event:
        return Event(f"messages/partial{self.suffix}", to_json([_finished(self.message)]))


@dataclass(slots=True)
class EventBuffer:
    """Collects events between two flushes, in order."""

    modes: Sequence[str]
    _ready: list[Event] = field(default_factory=list)
    _delta: _Delta | None = None
    _partial: _Partial | None = None
    _whole: dict[tuple[str, str], AIMessageChunk] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._ready) + (self._delta is not None) + (self._partial is not None)

    def add(self, event: Event) -> None:
        """Add an event that is frozen already."""
        self._close()
        self._ready.append(event)

    def add_part(self, part: Part) -> None:
        """Add what LangGraph streamed."""
        namespace, mode, data = part
        suffix = "".join(f"|{label}" for label in namespace)
        if mode != "messages":
            self.add(Event(f"{mode}{suffix}", to_json(_public(mode, data))))
            return
        message, metadata = data
        if "messages-tuple" in self.modes:
            self._add_tuple(f"messages{suffix}", message, metadata)
        if "messages" in self.modes:
            self._add_whole(suffix, message, metadata)

    def take(self) -> list[Event]:
        """Everything collected so far; the buffer is empty afterwards."""
        self._close()
        taken, self._ready = self._ready, []
        return taken

    def _add_tuple(self, event: str, message: BaseMessage, metadata: dict[str, Any]) -> None:
        if self._delta is not None and self._delta.takes(event, message):
            self._delta.message = _joined(self._delta.message, message)
            return
        if isinstance(message, AIMessageChunk):
            self._close()
            self._delta = _Delta(event, message, metadata)
        else:
            self.add(Event(event, to_json([message, metadata])))

    def _close(self) -> None:
        """Freeze what is still growing; of one message, both ways of telling it at once."""
        for growing in (self._delta, self._partial):
            if growing is not None:
                self._ready.append(growing.frozen())
        self._delta = self._partial = None

    def _add_whole(self, suffix: str, message: BaseMessage, metadata: dict[str, Any]) -> None:
        """The older mode ``messages``: the message so far, again and again, then complete."""
        key = (suffix, message.id or "")
        known = self._whole.get(key)
        if known is None:
            about = {message.id: {"metadata": metadata}}
            self.add(Event(f"messages/metadata{suffix}", to_json(about)))
        if isinstance(message, AIMessageChunk):
            whole = message if known is None else _joined(known, message)
            self._whole[key] = whole
            if message.chunk_position != "last":
                if self._partial is not None and not self._partial.tells(key):
                    self._close()
                self._partial = _Partial(suffix, whole)
                return
            message = whole
        self._whole.pop(key, None)
        if self._partial is not None and self._partial.tells(key):
            self._partial = None  # it is said again, and whole
        self.add(Event(f"messages/complete{suffix}", to_json([_finished(message)])))


def _joined(known: AIMessageChunk, chunk: BaseMessage) -> AIMessageChunk:
    return cast("AIMessageChunk", known + chunk)


def _finished(message: BaseMessage) -> dict[str, Any]:
    if isinstance(message, AIMessageChunk):
        message = message_chunk_to_message(message)
    return message_json(message)


def _public(mode: str, data: Any) -> Any:  # noqa: ANN401 - whatever a graph emits
    """Take configuration and raw errors out of what diagnostics modes carry."""
    if mode == "checkpoints":
        return _checkpoint(data)
    if mode == "tasks":
        return _task(data)
    if mode == "debug":
        payload = data["payload"]
        public = _checkpoint(payload) if data["type"] == "checkpoint" else _task(payload)
        return {**data, "payload": public}
    return data


def _checkpoint(payload: Mapping[str, Any]) -> dict[str, Any]:
    public = dict(payload)
    public["checkpoint"] = _checkpoint_ref(public.pop("config", None))
    public["parent_checkpoint"] = _checkpoint_ref(public.pop("parent_config", None))
    public["tasks"] = [_task(task) for task in payload["tasks"]]
    return public


def _checkpoint_ref(config: Any) -> dict[str, Any] | None:  # noqa: ANN401 - RunnableConfig or None
    if not config:
        return None
    return {key: config["configurable"].get(key) for key in _SAFE_CHECKPOINT_KEYS}


def _task(payload: Any) -> dict[str, Any]:  # noqa: ANN401 - one of several typed dicts
    public = dict(payload)
    if public.get("error"):
        public["error"] = "graph_failed"
    if isinstance(public.get("state"), dict) and "configurable" in public["state"]:
        public["state"] = {"configurable": _checkpoint_ref(public["state"])}
    return public
