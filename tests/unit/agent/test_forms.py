"""What fits a form that a tool's server sent, whatever the server writes into it."""

from __future__ import annotations

from typing import Any

import pytest

from app.agent.forms import MOST_CHOSEN, check_content

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "share": {"type": "number"},
        "sure": {"type": "boolean"},
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l"}]},
        "days": {"type": "array", "maxItems": 2, "items": {"type": "string", "enum": ["mo", "tu"]}},
        "extras": {"type": "array", "items": {"anyOf": [{"const": "nuts", "title": "Nuts"}]}},
    },
    "required": ["name"],
}


class TestContent:
    @pytest.mark.parametrize(
        "content",
        [
            {"name": "Ada"},
            {"name": "Ada", "age": 36, "share": 0.5, "sure": True, "colour": "red"},
            {"name": "Ada", "size": "l", "days": ["mo", "tu"], "extras": ["nuts"]},
            {"name": "Ada", "days": []},
        ],
    )
    def test_that_is_what_the_form_asks_for_fits(self, content: dict[str, Any]) -> None:
        assert check_content(FORM, content) is None

    @pytest.mark.parametrize(
        ("content", "wrong"),
        [
            (None, "type"),
            ("Ada", "type"),
            ({}, "required"),
            ({"name": "Ada", "password": "x"}, "additionalProperties"),
            ({"name": "A"}, "`name` (minLength)"),
            ({"name": "Adaline"}, "`name` (maxLength)"),
            ({"name": 7}, "`name` (type)"),
            ({"name": "Ada", "age": 36.5}, "`age` (type)"),
            ({"name": "Ada", "age": True}, "`age` (type)"),
            ({"name": "Ada", "age": 151}, "`age` (maximum)"),
            ({"name": "Ada", "sure": "yes"}, "`sure` (type)"),
            ({"name": "Ada", "colour": "green"}, "`colour` (enum)"),
            ({"name": "Ada", "size": "m"}, "`size` (enum)"),
            ({"name": "Ada", "days": ["mo", "mo", "tu"]}, "`days` (maxItems)"),
            ({"name": "Ada", "days": ["we"]}, "`days` (enum)"),
            ({"name": "Ada", "extras": ["salt"]}, "`extras` (enum)"),
            ({"name": {"nested": "x"}}, "`name` (type)"),
        ],
    )
    def test_that_is_something_else_does_not_and_one_is_told_where(
        self, content: object, wrong: str
    ) -> None:
        assert check_content(FORM, content) == wrong


class TestAFormThatIsNone:
    """It comes from a server that nobody need trust."""

    @pytest.mark.parametrize(
        "schema",
        [
            {},
            {"type": "string"},
            {"type": "object", "properties": "all", "required": "all"},
            {"type": "object", "properties": {"a": None, "b": 3}, "required": [["a"], None]},
            {"properties": {"a": {"type": ["string", {}], "minLength": "x", "enum": "x"}}},
            {"properties": {"a": {"type": "object", "properties": {}}, "b": {"oneOf": [1]}}},
            {"properties": {"a": {"type": "array", "items": 7, "maxItems": True}}},
        ],
    )
    def test_is_read_as_far_as_it_is_one(self, schema: dict[str, Any]) -> None:
        fits = check_content(schema, {})
        assert fits is None

    @pytest.mark.parametrize(
        "field",
        [
            {"$ref": "http://127.0.0.1:1/schema"},
            {"type": "string", "pattern": "(a+)+$"},
            {"type": "string", "allOf": [{"$ref": "#"}], "format": "regex"},
        ],
    )
    def test_has_no_reference_followed_and_no_pattern_tried(self, field: dict[str, Any]) -> None:
        schema = {"type": "object", "properties": {"a": field}}
        assert check_content(schema, {"a": "a" * 40 + "!"}) is None
        assert check_content({"$ref": "http://127.0.0.1:1/schema", **schema}, {"a": "b"}) is None

    def test_has_no_more_chosen_of_it_than_is_quickly_looked_for(self) -> None:
        items = {"type": "string", "enum": [f"choice {n}" for n in range(5000)]}
        schema = {"properties": {"a": {"type": "array", "items": items, "maxItems": 10**9}}}
        chosen = ["choice 4999"] * MOST_CHOSEN
        assert check_content(schema, {"a": chosen}) is None
        assert check_content(schema, {"a": ["none"] * 100_000}) == "`a` (maxItems)"

    def test_has_a_name_told_only_if_it_reads_like_one(self) -> None:
        schema = {"type": "object", "properties": {"<b>a</b>": {"type": "string"}}}
        assert check_content(schema, {"<b>a</b>": 1}) == "type"
