"""From what LangGraph streams to the events of the wire. Pure: no clock, no database.

A part is ``(namespace, mode, data)``. Text deltas of one message are merged until they are
flushed, and of the older mode's growing messages only the newest is kept; everything else is
frozen to bytes at once, if it is not already (``taps.py``), because a graph may change what it
emitted. States: ``states.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import orjson
from langchain_core.messages import AIMessageChunk, BaseMessage, message_chunk_to_message

from app.runs.events import Event
from app.runs.wire import message_json, to_json
from app.worker.states import STATE_MODES, StateEvent, StateEvents

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from langgraph.types import StreamMode

    from app.runs.events import CheckpointRef
    from app.worker.states import Checkpoints

Part = tuple[tuple[str, ...], str, Any]


def langgraph_modes(modes: Iterable[str]) -> list[StreamMode]:
    """The modes that LangGraph must stream so that the wished-for events can be made."""
    wanted = ["messages" if mode == "messages-tuple" else mode for mode in modes]
    if STATE_MODES.intersection(wanted):
        wanted.append("checkpoints")  # names the checkpoints of states
    return cast("list[StreamMode]", list(dict.fromkeys(wanted)))


@dataclass(slots=True)
class _Delta:
    """Chunks of one message that were not flushed yet."""

    event: str
    message: AIMessageChunk
    metadata: bytes

    def takes(self, event: str, chunk: BaseMessage) -> bool:
        return (
            self.event == event
            and isinstance(chunk, AIMessageChunk)
            and chunk.id is not None
            and chunk.id == self.message.id
        )

    def frozen(self) -> Event:
        return Event(self.event, to_json([self.message, orjson.Fragment(self.metadata)]))


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
    size: int = 0
    """How many bytes wait, without those of a message that still grows."""
    _ready: list[Event | StateEvent] = field(default_factory=list)
    _delta: _Delta | None = None
    _partial: _Partial | None = None
    _whole: dict[tuple[str, str], AIMessageChunk] = field(default_factory=dict)
    _states: StateEvents = field(init=False)

    def __post_init__(self) -> None:
        self._states = StateEvents(self.modes)

    def __len__(self) -> int:
        return len(self._ready) + (self._delta is not None) + (self._partial is not None)

    def refer_to(self, checkpoints: Checkpoints, persisted: Collection[str]) -> None:
        """Let states leave out the persisted channels' values where a checkpoint holds them."""
        self._states.checkpoints = checkpoints
        self._states.persisted = persisted

    def add(self, event: Event | StateEvent) -> None:
        """Add an event that is frozen already."""
        self._close()
        self._append(event)

    def add_part(self, part: Part) -> None:
        """Add what LangGraph streamed."""
        namespace, mode, data = part
        suffix = "".join(f"|{label}" for label in namespace)
        if mode in STATE_MODES:
            event = self._states.of_part(suffix, mode, data)
            if event is not None:
                self.add(event)
            return
        if mode != "messages":
            self.add(Event(f"{mode}{suffix}", to_json(data)))
            return
        message, metadata = data
        if "messages-tuple" in self.modes:
            self._add_tuple(f"messages{suffix}", message, metadata)
        if "messages" in self.modes:
            self._add_whole(suffix, message, metadata)

    def add_state(self, values: Mapping[str, Any], ref: CheckpointRef) -> None:
        """Add the ``values`` of a checkpoint."""
        self.add(self._states.at(values, ref))

    def give_up(self) -> None:
        """Wait for no checkpoint any more: the states that did are stored whole."""
        for event in self._ready:
            if isinstance(event, StateEvent):
                event.give_up()
        self._measure()

    def look(self) -> None:
        """Let states go whose checkpoints are stored by now."""
        for event in self._ready:
            if isinstance(event, StateEvent):
                event.is_waiting()
        self._measure()

    def take(self) -> list[Event]:
        """What can be stored: everything up to a state that waits for its checkpoint."""
        count = next((n for n, each in enumerate(self._ready) if _is_waiting(each)), None)
        if count is None:
            self._close()
            count = len(self._ready)
        taken, self._ready = self._ready[:count], self._ready[count:]
        self._measure()
        return [each.closed() if isinstance(each, StateEvent) else each for each in taken]

    def _append(self, event: Event | StateEvent) -> None:
        self._ready.append(event)
        self.size += _size(event)

    def _measure(self) -> None:
        self.size = sum(map(_size, self._ready))

    def _add_tuple(self, event: str, message: BaseMessage, metadata: dict[str, Any]) -> None:
        if self._delta is not None and self._delta.takes(event, message):
            self._delta.message = _joined(self._delta.message, message)
            return
        if isinstance(message, AIMessageChunk):
            self._close()
            self._delta = _Delta(event, message, to_json(metadata))
        else:
            self.add(Event(event, to_json([message, metadata])))

    def _close(self) -> None:
        """Freeze what is still growing; of one message, both ways of telling it at once."""
        for growing in (self._delta, self._partial):
            if growing is not None:
                self._append(growing.frozen())
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


def _is_waiting(event: Event | StateEvent) -> bool:
    return isinstance(event, StateEvent) and event.is_waiting()


def _size(event: Event | StateEvent) -> int:
    return event.size if isinstance(event, StateEvent) else len(event.data)


def _joined(known: AIMessageChunk, chunk: BaseMessage) -> AIMessageChunk:
    return cast("AIMessageChunk", known + chunk)


def _finished(message: BaseMessage) -> dict[str, Any]:
    if isinstance(message, AIMessageChunk):
        message = message_chunk_to_message(message)
    return message_json(message)
