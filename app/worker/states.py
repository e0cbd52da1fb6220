"""State events on their way into the log: by reference where the state is large.

LangGraph streams `values` before it makes their checkpoint; the next `checkpoints` part names it,
and it is committed before or soon after that. Until both are so, the event holds up those behind
it, since a reader must find the checkpoint of whatever it reads. Only the graph's own states go by
reference, see docs/decisions/0013-states-by-reference.md. Pure: no clock, no database.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from app.runs.events import CheckpointRef, Event
from app.runs.state_templates import FrozenState, freeze_state, survives_storage
from app.runs.wire import to_json
from app.worker.public import public

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

STATE_MODES = frozenset({"values", "checkpoints", "tasks", "debug"})
_INTERRUPT = "__interrupt__"


@dataclass(slots=True, eq=False)
class StateEvent:
    """An event that will leave out its state if it comes to know the state's checkpoint."""

    event: str
    frozen: FrozenState
    ref: CheckpointRef | None = None
    is_open: bool = True
    """Whether it waits for its checkpoint: to be named, or to be committed."""

    def closed(self) -> Event:
        """What is stored."""
        if self.frozen.template is None or self.ref is None or self.is_open:
            return Event(self.event, self.frozen.whole)
        return Event(self.event, self.frozen.template, self.ref)


@dataclass(slots=True)
class StateEvents:
    """Makes a run's state events, and tells when each may be stored."""

    modes: Collection[str]
    persisted: Collection[str] = ()
    """The channels that checkpoints have; without any, every state is stored whole."""
    _open: list[StateEvent] = field(default_factory=list)
    _unnamed: StateEvent | None = None
    _committed: set[str] = field(default_factory=set)
    _step: tuple[CheckpointRef, Mapping[str, bytes]] | None = None
    """The newest checkpoint that was named, with those of its values that it gives back."""

    def of_part(self, suffix: str, mode: str, data: Any) -> Event | StateEvent | None:  # noqa: ANN401
        """What one of the graph's own parts becomes; None where the client asked for no such."""
        if mode == "checkpoints" or (mode == "debug" and data["type"] == "checkpoint"):
            return self._checkpoint(suffix, mode, data)
        if mode == "values":
            return self._values(suffix, data)
        return self._task(suffix, mode, data)

    def at(self, values: Mapping[str, Any], ref: CheckpointRef) -> Event | StateEvent:
        """The ``values`` of a checkpoint that was committed before."""
        self._committed.add(ref.checkpoint_id)
        return self._kept("values", freeze_state(values, self._gives_back), ref)

    def commit(self, checkpoints: Iterable[CheckpointRef]) -> None:
        """Learn which checkpoints are committed."""
        self._committed.update(ref.checkpoint_id for ref in checkpoints if not ref.namespace)
        for event in self._open:
            event.is_open = event.ref is None or event.ref.checkpoint_id not in self._committed
        self._open = [event for event in self._open if event.is_open]

    def give_up(self) -> None:
        """Wait for no checkpoint any more: what is still open is stored whole."""
        self._open = []
        self._unnamed = None

    def is_waiting(self, event: Event | StateEvent) -> bool:
        """Whether an event cannot be stored yet."""
        return event in self._open

    def _values(self, suffix: str, data: Any) -> Event | StateEvent:  # noqa: ANN401
        self._store_whole(self._unnamed)  # no checkpoint was made of it
        self._unnamed = None
        if suffix or not isinstance(data, dict) or _INTERRUPT in data:
            return Event(f"values{suffix}", to_json(data))
        event = self._kept("values", freeze_state(data, self._gives_back), None)
        self._unnamed = event if isinstance(event, StateEvent) else None
        return event

    def _checkpoint(self, suffix: str, mode: str, data: Any) -> Event | StateEvent | None:  # noqa: ANN401
        payload = data["payload"] if mode == "debug" else data
        told = public(mode, data)
        if suffix or not isinstance(payload["values"], dict):
            return Event(f"{mode}{suffix}", to_json(told)) if mode in self.modes else None
        ref = CheckpointRef("", payload["config"]["configurable"]["checkpoint_id"])
        self._name(ref)
        if not (STATE_MODES - {"values"}).intersection(self.modes):
            return None
        if self._step is None or self._step[0] != ref:
            self._step = (ref, self._parts(payload["values"]))
        if mode not in self.modes:
            return None

        def frame(state: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON of any kind
            if mode == "checkpoints":
                return {**told, "values": state}
            return {**told, "payload": {**told["payload"], "values": state}}

        return self._kept(mode, freeze_state(payload["values"], self._gives_back, frame), ref)

    def _task(self, suffix: str, mode: str, data: Any) -> Event | StateEvent:  # noqa: ANN401
        """A task's input is most often the state that its step began with."""
        told = public(mode, data)
        payload = told["payload"] if mode == "debug" else told
        given = payload.get("input")
        if suffix or self._step is None or not isinstance(given, dict):
            return Event(f"{mode}{suffix}", to_json(told))
        ref, parts = self._step

        def frame(state: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON of any kind
            task = {**payload, "input": state}
            return {**told, "payload": task} if mode == "debug" else task

        frozen = freeze_state(given, lambda key, _, part: parts.get(key) == part, frame)
        return self._kept(mode, frozen, ref)

    def _kept(
        self, name: str, frozen: FrozenState, ref: CheckpointRef | None
    ) -> Event | StateEvent:
        if frozen.template is None:
            return Event(name, frozen.whole)
        event = StateEvent(name, frozen, ref)
        event.is_open = ref is None or ref.checkpoint_id not in self._committed
        if event.is_open:
            self._open.append(event)
        return event

    def _name(self, ref: CheckpointRef) -> None:
        if self._unnamed is not None:
            self._unnamed.ref = ref
            self._unnamed = None
            self.commit(())

    def _store_whole(self, event: StateEvent | None) -> None:
        if event in self._open:
            self._open.remove(event)

    def _parts(self, values: Mapping[str, Any]) -> Mapping[str, bytes]:
        parts = ((key, to_json(value), value) for key, value in values.items())
        return {key: part for key, part, value in parts if self._gives_back(key, value, part)}

    def _gives_back(self, key: str, value: Any, _part: bytes) -> bool:  # noqa: ANN401
        return key in self.persisted and survives_storage(value)
