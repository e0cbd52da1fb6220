"""Whatever a graph puts into its state, there is JSON for it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from pydantic import BaseModel

from app.runs.wire import copy_of, to_json


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("levels", [300, 900, 100_000])
def test_what_is_nested_too_deeply_is_named_by_its_type(levels: int) -> None:
    assert b"<dict>" in to_json(nested(levels))


@pytest.mark.parametrize("message", [AIMessage, AIMessageChunk])
def test_so_are_the_arguments_of_a_call(message: type[AIMessage]) -> None:
    said = message("on it", tool_calls=[{"name": "f", "args": nested(300), "id": "1"}])
    assert json.loads(to_json([said]))[0]["content"] == "on it"


RACE = """
import sys, threading
from langchain_core.messages import AIMessage
from app.runs.wire import to_json

sys.setswitchinterval(1e-6)
value = {"a": [], "b": {}}
done = threading.Event()

def change():
    count = 0
    while not done.is_set():
        count += 1
        value["a"] = [[AIMessage("said", id="m")] * (count % 50) for _ in range(3)]
        value["b"] = {str(number): [number] for number in range(count % 100)}
        for each in value["a"]:
            each.clear()

threads = [threading.Thread(target=change) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(3000):
    to_json(value)
done.set()
for thread in threads:
    thread.join()
print("survived")
"""
"""With a free hand for all threads, orjson alone died of it within a second."""


class Color(Enum):
    RED = "red"


class Model(BaseModel):
    inner: dict[str, Any]


@dataclass
class Record:
    inner: Any
    _hidden: str = "not shown"


class Raising(BaseModel):
    def model_dump(self, **_: Any) -> dict[str, Any]:
        raise ValueError("a secret")


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("a secret")

    __repr__ = __str__


class Lying(dict[str, Any]):
    """Says nothing of what it holds, and has something in it that nobody could write."""

    def keys(self) -> Any:
        raise ValueError("a secret")

    __iter__ = items = keys


class Nowhere(tzinfo):
    """Where orjson asks this for the time, the process dies."""

    def utcoffset(self, _when: datetime | None) -> timedelta:
        raise ValueError("a secret")

    tzname = dst = utcoffset  # type: ignore[assignment]


class Vain(int):
    def bit_length(self) -> int:
        raise ValueError("a secret")


FORMS: dict[str, tuple[Any, Any]] = {
    "list": ([], []),
    "object": ({}, {}),
    "null": (None, None),
    "not a number": (float("nan"), None),
    "infinity": (float("inf"), None),
    "uuid": (UUID("6f1c1f0e-6f0f-4f8a-8f3b-0d4e0a8f6a51"), "6f1c1f0e-6f0f-4f8a-8f3b-0d4e0a8f6a51"),
    "moment": (datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01T00:00:00+00:00"),
    "day": (date(2026, 3, 1), "2026-03-01"),
    "decimal": (Decimal("1.50"), "1.50"),
    "bytes": (b"abc", "YWJj"),
    "set": ({1}, [1]),
    "tuple": ((1, "a"), [1, "a"]),
    "enumeration": (Color.RED, "red"),
    "nul": ("a\u0000b", "a\u0000b"),
    "lone surrogate": ("a\ud800b", "a\ud800b"),
    "large integer": (2**70, 2**70),
    "larger than can be written": (1 << 20_000, "<int>"),
    "model": (Model(inner={"a": [1]}), {"inner": {"a": [1]}}),
    "record": (Record({"a": [1]}), {"inner": {"a": [1]}}),
    "record of what has no form": (Record(threading.Lock()), {"inner": "<lock>"}),
    "error": (ValueError("a secret"), {"error": "ValueError"}),
    "what fails when asked": (Raising(), "<Raising>"),
    "what lies": (Lying(a=threading.Lock()), "<Lying>"),
    "moment of nowhere": (datetime(2026, 3, 1, tzinfo=Nowhere()), "<datetime>"),
    "time of day": (time(12, 30), "12:30:00"),
    "vain integer": (Vain(2**70), 2**70),
    "what has no form": (Unspeakable(), "<Unspeakable>"),
    "keys": ({1: "a", None: "b", 2.5: "c"}, {"1": "a", "null": "b", "2.5": "c"}),
    "key that has no form": ({Unspeakable(): 1}, {"<Unspeakable>": 1}),
}


class TestAValue:
    @pytest.mark.parametrize(("value", "form"), FORMS.values(), ids=FORMS)
    def test_has_one_form(self, value: Any, form: Any) -> None:
        assert json.loads(to_json(value)) == form

    @pytest.mark.parametrize(("value", "form"), FORMS.values(), ids=FORMS)
    @pytest.mark.parametrize("beside", [AIMessage("hi"), "a\ud800b"], ids=["message", "surrogate"])
    def test_has_it_within_others_and_beside_whatever_there_is(
        self, value: Any, form: Any, beside: Any
    ) -> None:
        told = json.loads(
            to_json({"beside": beside, "in": [{"value": value}], "record": Record(value)})
        )
        assert told["in"] == [{"value": form}]
        assert told["record"] == {"inner": form}

    def test_that_contains_itself_is_named_there(self) -> None:
        value: dict[str, Any] = {"a": [1]}
        value["a"] += [value, value]
        assert json.loads(to_json(value)) == {"a": [1, "<dict>", "<dict>"]}

    def test_is_taken_for_what_it_is_whatever_it_says_of_itself(self) -> None:
        class Masked:
            @property  # type: ignore[misc]
            def __class__(self) -> Any:
                raise ValueError("a secret")

        assert json.loads(to_json({"a": [Masked()], "b": 1})) == {"a": ["<Masked>"], "b": 1}

    def test_is_nobody_elses_once_it_is_copied(self) -> None:
        value = {"a": [1]}
        copy = copy_of(value)
        value["a"].append(2)
        assert copy == {"a": [1]}


def test_a_value_is_frozen_while_other_threads_change_it() -> None:
    """In a process of its own, which would die of it."""
    ended = subprocess.run([sys.executable, "-c", RACE], check=False, capture_output=True)
    assert (ended.returncode, ended.stdout) == (0, b"survived\n"), ended.stderr
