"""State events on their way into the log: by reference where the state is large.

LangGraph streams `values` before it makes their checkpoint; the next `checkpoints` part names it,
and it is committed before or soon after that. Until both are so, the event holds up those behind
it, since a reader must find the checkpoint of whatever it reads. Only the graph's own states go by
reference, see docs/decisions/0013-states-by-reference.md. Pure: no clock, no database.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

import orjson

from app.runs.events import CheckpointRef, Event
from app.runs.state_templates import FrozenState, freeze_state, survives_storage
from app.runs.wire import to_json
from app.worker.public import public

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

STATE_MODES = frozenset({"values", "checkpoints", "tasks", "debug"})
_INTERRUPT = "__interrupt__"
_CLOSED = FrozenState(b"")


class Checkpoints(Protocol):
    """Who knows which checkpoints are stored."""

    def holds(self, namespace: str, checkpoint_id: str) -> bool | None:
        """Whether a stored checkpoint holds what the graph does; None: not stored yet."""
        ...


class NoCheckpoints:
    """Nothing to refer to: every state is stored whole."""

    def holds(self, namespace: str, checkpoint_id: str) -> bool | None:  # noqa: ARG002
        """Whether a stored checkpoint holds what the graph does: none does."""
        return False


class StateEvent:
    """An event that will leave out its state if it comes to know the state's checkpoint.

    Until that is certain it has both forms of it, and from then on one.
    """

    __slots__ = ("_checkpoints", "_closed", "_frozen", "_name", "ref")

    def __init__(
        self, name: str, frozen: FrozenState, checkpoints: Checkpoints, ref: CheckpointRef | None
    ) -> None:
        self._name = name
        self._frozen = frozen
        self._checkpoints = checkpoints
        self.ref = ref
        self._closed: Event | None = None

    @property
    def size(self) -> int:
        """How many bytes it holds."""
        if self._closed is not None:
            return len(self._closed.data)
        return len(self._frozen.whole) + len(self._frozen.template or b"")

    def is_waiting(self) -> bool:
        """Whether its checkpoint has to be named yet, or to be committed."""
        if self._closed is None and self.ref is not None:
            held = self._checkpoints.holds(self.ref.namespace, self.ref.checkpoint_id)
            if held is not None:
                self._close(by_reference=held)
        return self._closed is None

    def give_up(self) -> None:
        """Wait for no checkpoint any more, unless it is there."""
        if self.is_waiting():
            self._close(by_reference=False)

    def closed(self) -> Event:
        """What is stored."""
        self.give_up()
        return cast("Event", self._closed)

    def _close(self, *, by_reference: bool) -> None:
        template = self._frozen.template
        if by_reference and template is not None:
            self._closed = Event(self._name, template, self.ref)
        else:
            self._closed = Event(self._name, self._frozen.whole)
        self._frozen = _CLOSED


@dataclass(slots=True)
class StateEvents:
    """Makes a run's state events."""

    modes: Collection[str]
    persisted: Collection[str] = ()
    """The channels whose values checkpoints have."""
    checkpoints: Checkpoints = field(default_factory=NoCheckpoints)
    _unnamed: StateEvent | None = None
    _step: tuple[CheckpointRef, Mapping[str, bytes]] | None = None
    """The newest checkpoint that was named, with those of its values that it gives back."""

    def of_part(self, suffix: str, mode: str, data: Any) -> Event | StateEvent | None:  # noqa: ANN401
        """What one of LangGraph's parts becomes; None where the client asked for no such."""
        if isinstance(data, orjson.Fragment):  # as it is shown, and frozen
            return Event(f"{mode}{suffix}", to_json(data)) if mode in self.modes else None
        if mode == "checkpoints" or (mode == "debug" and data["type"] == "checkpoint"):
            return self._checkpoint(suffix, mode, data)
        if mode == "values":
            return self._values(suffix, data)
        return self._task(suffix, mode, data)

    def at(self, values: Mapping[str, Any], ref: CheckpointRef) -> Event | StateEvent:
        """The ``values`` of a checkpoint."""
        return self._kept("values", freeze_state(values, self._gives_back), ref)

    def _values(self, suffix: str, data: Any) -> Event | StateEvent:  # noqa: ANN401
        if self._unnamed is not None:
            self._unnamed.give_up()  # no checkpoint was made of it
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
        return StateEvent(name, frozen, self.checkpoints, ref)

    def _name(self, ref: CheckpointRef) -> None:
        if self._unnamed is not None:
            self._unnamed.ref = ref
            self._unnamed = None

    def _parts(self, values: Mapping[str, Any]) -> Mapping[str, bytes]:
        parts = ((key, to_json(value), value) for key, value in values.items())
        return {key: part for key, part, value in parts if self._gives_back(key, value, part)}

    def _gives_back(self, key: str, value: Any, _part: bytes) -> bool:  # noqa: ANN401
        return key in self.persisted and survives_storage(value)
