"""A call's arguments are checked before anybody is asked, in bounded time."""

from __future__ import annotations

from time import thread_time
from typing import Any

import pytest

from app.tools.mcp.arguments import complaint_about
from app.tools.mcp.schemas import visible_schema

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "sizes": {"type": "array", "items": {"minimum": 2}}},
    "required": ["text"],
    "additionalProperties": False,
}


def complaint(arguments: dict[str, Any], schema: dict[str, Any] = SCHEMA) -> str | None:
    return complaint_about(arguments, visible_schema(schema))


class TestArguments:
    def test_that_fit_are_not_complained_about(self) -> None:
        assert complaint({"text": "a", "sizes": [2, 3]}) is None

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({}, "`arguments` misses text"),
            ({"text": 5}, '`text` must have type "string"'),
            ({"text": "a", "sizes": [3, 1]}, "`sizes.1` must have minimum 2"),
            ({"text": "a", "colour": "b"}, "`arguments` has no colour"),
        ],
    )
    def test_that_do_not_fit_say_where(self, arguments: dict[str, Any], said: str) -> None:
        assert complaint(arguments) == f"The arguments do not fit the tool: {said}."

    @pytest.mark.parametrize("name", ["user_id", "namespace", "tenant", "tenantId", "USER_ID"])
    def test_that_say_for_whom_are_refused_though_the_server_takes_them(self, name: str) -> None:
        taking = {"type": "object", "properties": {name: {"type": "string"}}}
        said = complaint({name: "somebody else"}, taking)
        assert said == f"The arguments `{name}` are not yours to choose: leave them out."

    def test_are_not_quoted(self) -> None:
        assert "secret" not in (complaint({"text": ["secret"]}) or "secret")

    def test_may_not_be_endless(self) -> None:
        deep: dict[str, Any] = {}
        for _ in range(500):
            deep = {"a": deep}
        assert complaint(deep, {}) == "The arguments are nested too deeply."
        assert complaint({"a": "x" * 300_000}, {}) == "The arguments are too long."


class TestASchemaThatTakesForever:
    @pytest.mark.parametrize(
        "schema",
        [
            {"properties": {"a": {"pattern": "(a+)+$"}}},
            {"patternProperties": {"(a+)+$": {}}, "additionalProperties": False},
            {"properties": {"a": {"uniqueItems": True}}},
            {
                "$ref": "#/$defs/d0",
                "$defs": {
                    f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 8} for n in range(20)
                },
            },
        ],
        ids=["pattern", "patterns of names", "unique items", "references"],
    )
    @pytest.mark.parametrize("value", ["a" * 5000 + "!", [[n] for n in range(5000)]])
    def test_takes_no_time(self, schema: dict[str, Any], value: object) -> None:
        begun = thread_time()
        complaint({"a": value, "a" * 60 + "!": 1}, schema)
        assert thread_time() - begun < 2

    def test_is_left_to_the_server_at_some_point(self) -> None:
        schema = {"properties": {"a": {"items": {"anyOf": [{"type": "null"}] * 100}}}}
        assert complaint({"a": [1] * 50_000}, schema) is not None  # some are complained about
        wide = {"properties": {"a": {"items": {"anyOf": [{"type": "string"}] * 100}}}}
        assert complaint({"a": ["x"] * 20_000}, wide) is None
