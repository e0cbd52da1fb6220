"""States go by reference once their checkpoint is stored; nothing overtakes one that waits."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from app.runs.events import CheckpointRef, Event
from app.runs.state_templates import filled
from app.runs.wire import to_json
from app.worker.parts import EventBuffer, langgraph_modes

LONG = "a long text " * 1000
STATE = {"text": LONG, "count": 1}


class Checkpoints:
    """Which checkpoints hold what the graph does."""

    def __init__(self, **known: bool) -> None:
        self.known = known

    def holds(self, namespace: str, checkpoint_id: str) -> bool | None:
        assert namespace == ""
        return self.known.get(checkpoint_id)


def buffer_of(*modes: str, **known: bool) -> tuple[EventBuffer, Checkpoints]:
    buffer, checkpoints = EventBuffer(modes), Checkpoints(**known)
    buffer.refer_to(checkpoints, frozenset(STATE))
    return buffer, checkpoints


def values(buffer: EventBuffer, state: Any = STATE, *namespace: str) -> None:
    buffer.add_part((namespace, "values", state))


def checkpoint(
    buffer: EventBuffer, name: str = "c1", state: Any = STATE, *, mode: str = "checkpoints"
) -> None:
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": name}}
    payload = {"config": config, "parent_config": None, "values": state, "tasks": [], "next": []}
    data = {"type": "checkpoint", "step": 1, "payload": payload} if mode == "debug" else payload
    buffer.add_part(((), mode, data))


def custom(buffer: EventBuffer, data: Any) -> None:
    buffer.add_part(((), "custom", data))


def names(events: list[Event]) -> list[str]:
    return [event.event for event in events]


def whole(event: Event) -> Any:
    """What a reader is told who finds the state in the checkpoint."""
    if event.state_of is None:
        return orjson.loads(event.data)
    assert len(event.data) < len(LONG)
    return orjson.loads(filled(event.data, lambda key: to_json(STATE[key])) or b"")


class TestValues:
    def test_wait_for_the_name_and_the_commit_of_their_checkpoint(self) -> None:
        buffer, checkpoints = buffer_of("values", "custom")
        custom(buffer, 1)
        values(buffer)
        custom(buffer, 2)
        assert names(buffer.take()) == ["custom"]
        checkpoint(buffer)
        assert buffer.take() == []
        checkpoints.known["c1"] = True
        told, behind = buffer.take()
        assert told.state_of == CheckpointRef("", "c1")
        assert whole(told) == STATE
        assert behind.data == b"2"
        assert buffer.take() == []

    def test_are_held_twice_only_until_their_checkpoint_is_certain(self) -> None:
        buffer, checkpoints = buffer_of("values", "custom")
        values(buffer)
        checkpoint(buffer)
        assert buffer.size > len(LONG)
        checkpoints.known["c1"] = True
        buffer.look()
        assert 0 < buffer.size < len(LONG)
        assert whole(buffer.take()[0]) == STATE
        assert buffer.size == 0

    def test_that_nobody_waits_for_any_more_are_held_once(self) -> None:
        buffer, _ = buffer_of("values")
        values(buffer)
        held = buffer.size
        buffer.give_up()
        assert len(to_json(STATE)) == buffer.size < held

    def test_that_are_small_wait_for_nothing(self) -> None:
        buffer, _ = buffer_of("values")
        values(buffer, {"text": "short"})
        assert [(e.data, e.state_of) for e in buffer.take()] == [(b'{"text":"short"}', None)]

    def test_at_an_interrupt_wait_for_nothing(self) -> None:
        buffer, _ = buffer_of("values")
        values(buffer, {**STATE, "__interrupt__": []})
        assert [event.state_of for event in buffer.take()] == [None]

    def test_of_a_subgraph_wait_for_nothing(self) -> None:
        buffer, _ = buffer_of("values")
        values(buffer, STATE, "sub:1")
        assert [(e.event, e.state_of) for e in buffer.take()] == [("values|sub:1", None)]

    def test_that_no_checkpoint_was_made_of_are_stored_whole(self) -> None:
        buffer, _ = buffer_of("values", c1=True)
        values(buffer, {**STATE, "count": 0})
        values(buffer)
        checkpoint(buffer)
        first, second = buffer.take()
        assert (first.state_of, second.state_of) == (None, CheckpointRef("", "c1"))
        assert whole(first) == {**STATE, "count": 0}

    def test_that_the_run_ends_with_are_stored_whole(self) -> None:
        buffer, _ = buffer_of("values")
        values(buffer)
        buffer.give_up()
        assert [(event.state_of, whole(event)) for event in buffer.take()] == [(None, STATE)]

    def test_of_a_checkpoint_that_holds_something_else_are_stored_whole(self) -> None:
        buffer, _ = buffer_of("values", c1=False)
        values(buffer)
        checkpoint(buffer)
        assert [(event.state_of, whole(event)) for event in buffer.take()] == [(None, STATE)]

    def test_are_as_they_were_when_they_were_emitted(self) -> None:
        buffer, _ = buffer_of("values", c1=True)
        state = {"text": LONG, "list": [1]}
        values(buffer, state)
        state["list"].append(2)  # type: ignore[attr-defined]
        buffer.give_up()
        assert whole(buffer.take()[0])["list"] == [1]


class TestCheckpoints:
    @pytest.mark.parametrize("mode", ["checkpoints", "debug"])
    def test_refer_to_themselves(self, mode: str) -> None:
        buffer, checkpoints = buffer_of(mode)
        checkpoint(buffer, mode=mode)
        assert buffer.take() == []
        checkpoints.known["c1"] = True
        (event,) = buffer.take()
        assert event.state_of == CheckpointRef("", "c1")
        told = whole(event)["payload"] if mode == "debug" else whole(event)
        assert told["values"] == STATE
        assert told["checkpoint"]["checkpoint_id"] == "c1"

    def test_that_nobody_asked_for_are_not_told(self) -> None:
        buffer, _ = buffer_of("values")
        checkpoint(buffer)
        assert buffer.take() == []

    @pytest.mark.parametrize("mode", ["values", "tasks", "debug", "checkpoints"])
    def test_are_asked_for_whenever_states_are(self, mode: str) -> None:
        assert "checkpoints" in langgraph_modes([mode])
        assert langgraph_modes(["updates", "messages-tuple"]) == ["updates", "messages"]


class TestTheInputOfATask:
    def test_refers_to_the_state_that_its_step_began_with(self) -> None:
        buffer, _ = buffer_of("tasks", c1=True)
        checkpoint(buffer)
        buffer.add_part(((), "tasks", {"id": "1", "name": "node", "input": STATE, "triggers": []}))
        (event,) = buffer.take()
        assert event.state_of == CheckpointRef("", "c1")
        assert whole(event) == {"id": "1", "name": "node", "input": STATE, "triggers": []}

    def test_that_is_something_else_is_stored_whole(self) -> None:
        buffer, _ = buffer_of("tasks", c1=True)
        checkpoint(buffer)
        given = {"text": LONG + "."}
        buffer.add_part(((), "tasks", {"id": "1", "name": "node", "input": given, "triggers": []}))
        (event,) = buffer.take()
        assert event.state_of is None
        assert whole(event)["input"] == given
