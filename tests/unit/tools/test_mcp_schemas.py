"""The schema of a server's tool, as the model is shown it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.utils.function_calling import convert_to_openai_tool
from ollama import Tool

from app.tools.mcp.schemas import MOST_CHARACTERS, MOST_NODES, visible_schema

TEXT = {"type": "string"}
RESERVED = ("user_id", "userId", "user-id", "namespace", "tenant", "tenant_id", "Tenant")
KEYWORDS = st.sampled_from(
    ["type", "properties", "required", "items", "enum", "anyOf", "$ref", "description", "minimum"]
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("#"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=20,
)


def nodes(schema: Any) -> int:
    inner = schema.values() if isinstance(schema, dict) else schema
    if not isinstance(schema, dict | list):
        return 0
    return isinstance(schema, dict) + sum(map(nodes, inner))


class TestWhatOnlyTheServiceSays:
    @pytest.mark.parametrize("name", RESERVED)
    def test_is_taken_out(self, name: str) -> None:
        declared = {"properties": {name: TEXT, "text": TEXT}, "required": [name, "text"]}
        shown = visible_schema(declared)
        assert list(shown["properties"]) == ["text"]
        assert shown["required"] == ["text"]

    @pytest.mark.parametrize(
        "declared",
        [
            {"allOf": [{"properties": {"user_id": TEXT}, "required": ["user_id"]}]},
            {"oneOf": [{"anyOf": [{"properties": {"user_id": TEXT}}]}]},
            {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"user_id": TEXT}}}},
            {
                "allOf": [{"$ref": "#/definitions/a~1b"}],
                "definitions": {"a/b": {"properties": {"user_id": TEXT}, "required": ["user_id"]}},
            },
        ],
        ids=["all of", "one of any", "reference", "reference to an old-style definition"],
    )
    def test_is_found_wherever_it_speaks_of_the_arguments(self, declared: dict[str, Any]) -> None:
        assert "user_id" not in json.dumps(visible_schema(declared))

    def test_is_the_servers_within_an_object(self) -> None:
        inner = {"type": "object", "properties": {"namespace": TEXT}}
        assert visible_schema({"properties": {"pod": inner}})["properties"]["pod"] == inner


class TestASchema:
    def test_keeps_what_everybody_reads(self) -> None:
        declared = {
            "type": "object",
            "properties": {
                "name": {"type": ["string", "null"], "description": "Whose.", "default": None},
                "size": {"type": "integer", "minimum": 1, "maximum": 9},
                "kind": {"enum": ["a", "b"]},
                "tags": {"type": "array", "items": TEXT, "maxItems": 3},
            },
            "required": ["name"],
            "additionalProperties": False,
        }
        assert visible_schema(declared) == declared

    def test_has_what_references_stand_for(self) -> None:
        declared = {
            "properties": {"a": {"$ref": "#/$defs/text", "description": "Mine."}},
            "$defs": {"text": {**TEXT, "description": "Anybody's."}},
        }
        assert visible_schema(declared)["properties"] == {"a": {**TEXT, "description": "Mine."}}

    @pytest.mark.parametrize("number", [2**64, -(2**63) - 1, float("inf")])
    def test_leaves_out_numbers_that_no_thread_keeps(self, number: float) -> None:
        declared = {"properties": {"n": {"maximum": number, "default": number, "minimum": 2**63}}}
        assert visible_schema(declared)["properties"] == {"n": {"minimum": 2**63}}

    def test_fetches_nothing(self) -> None:
        declared = {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}}
        assert visible_schema(declared)["properties"] == {"a": {}}

    def test_that_is_nothing_takes_no_arguments(self) -> None:
        assert visible_schema({}) == {"type": "object", "properties": {}}

    def test_that_refers_to_itself_ends(self) -> None:
        declared = {"properties": {"child": {"$ref": "#"}}}
        assert nodes(visible_schema(declared)) < 50

    def test_that_multiplies_stays_small(self) -> None:
        bomb = {
            f"d{n}": {"properties": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in "abcdefgh"}}
            for n in range(30)
        }
        shown = visible_schema({"$ref": "#/$defs/d0", "$defs": bomb})
        assert nodes(shown) < 4 * MOST_NODES

    @pytest.mark.parametrize(
        "repeated",
        [{"description": "d" * 1000}, {"enum": ["e" * 900] * 40}, {"properties": {"n" * 5000: {}}}],
        ids=["text", "values", "names"],
    )
    def test_that_has_one_text_written_out_a_thousand_times_stays_small(
        self, repeated: dict[str, Any]
    ) -> None:
        twice = {f"p{n}": {"$ref": "#/$defs/b"} for n in range(40)}
        once = {f"p{n}": {"$ref": "#/$defs/a"} for n in range(40)}
        declared = {"$defs": {"a": repeated, "b": {"properties": once}}, "properties": twice}
        assert len(json.dumps(visible_schema(declared))) < 3 * MOST_CHARACTERS

    @settings(max_examples=200)
    @given(declared=st.dictionaries(KEYWORDS, ANY_JSON, max_size=6))
    def test_is_one_that_the_models_library_sends_whatever_a_server_wrote(
        self, declared: dict[str, Any]
    ) -> None:
        function = {"name": "a", "description": "b", "parameters": visible_schema(declared)}
        Tool.model_validate(convert_to_openai_tool({"type": "function", "function": function}))
        json.dumps(function, allow_nan=False).encode()
