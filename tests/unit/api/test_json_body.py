"""Reading a body: what it may be, before anybody asks what it means."""

from __future__ import annotations

import json
import time

import pytest
from pydantic import JsonValue

from app.api.json_body import MOST_LEVELS, MOST_VALUES, parse_body
from app.api.refusals import InvalidFields, MalformedRequest
from app.api.schemas import StrictModel, Uuid
from tenancy.errors import InvalidInput


class Body(StrictModel):
    id: Uuid | None = None
    value: JsonValue = None


def nested(levels: int) -> bytes:
    return b'{"value": ' + b"[" * levels + b"]" * levels + b"}"


class TestABody:
    def test_may_be_as_deep_as_is_said(self) -> None:
        assert parse_body(nested(MOST_LEVELS - 1), Body).value is not None

    @pytest.mark.parametrize("levels", [MOST_LEVELS, 150, 10_000])
    def test_may_not_be_deeper(self, levels: int) -> None:
        with pytest.raises(MalformedRequest):
            parse_body(nested(levels), Body)

    def test_may_hold_as_many_values_as_is_said(self) -> None:
        of_others = 3  # the body, its key, the list
        values = b",".join([b'"a, [b]"'] * (MOST_VALUES - of_others))
        parsed = parse_body(b'{"value": [' + values + b"]}", Body)
        assert isinstance(parsed.value, list)
        assert len(parsed.value) == MOST_VALUES - of_others

    @pytest.mark.parametrize("each", [b"1", b"[]", b"{}", b'{"a":null}', b'"a"', b"true", b"-1e3"])
    def test_may_not_hold_more(self, each: bytes) -> None:
        values = b",".join([each] * MOST_VALUES)
        with pytest.raises(MalformedRequest, match="values"):
            parse_body(b'{"value": [' + values + b"]}", Body)

    def test_may_be_one_long_text(self) -> None:
        text = 'a, "quoted", [text] {with} \\ everything: ' * 30_000
        assert parse_body(json.dumps({"value": text}).encode(), Body).value == text

    @pytest.mark.parametrize("piece", [b'\\"', b'"', b"\\", b'"\\', b'\\\\"', b" ", b"-"])
    def test_of_nonsense_is_refused_in_a_moment(self, piece: bytes) -> None:
        started = time.thread_time()
        with pytest.raises(MalformedRequest):
            parse_body(b'{"value": "' + piece * 1_000_000, Body)
        assert time.thread_time() - started < 2

    def test_holds_no_constructor_at_any_depth(self) -> None:
        with pytest.raises(InvalidInput, match="lc"):
            parse_body(b'{"value": [{"a": {"lc": 1}}]}', Body)

    @pytest.mark.parametrize("raw", [b"{", b"\xff", b'{"value": NaN}', b'{"value": "\\ud800"}'])
    def test_must_be_json(self, raw: bytes) -> None:
        with pytest.raises(MalformedRequest):
            parse_body(raw, Body)

    @pytest.mark.parametrize(
        "raw", [b'{"value": "\\u0000"}', b'{"value": {"\\u0000": 1}}', b'{"value": [1e999]}']
    )
    def test_must_be_something_that_can_be_stored(self, raw: bytes) -> None:
        with pytest.raises(InvalidFields):
            parse_body(raw, Body)

    def test_may_speak_of_nul(self) -> None:
        assert parse_body(b'{"value": "\\\\u0000"}', Body).value == "\\u0000"

    def test_is_not_repeated_in_what_is_said_about_it(self) -> None:
        with pytest.raises(InvalidFields) as refused:
            parse_body(b'{"id": "secret words", "other secret": 1}', Body)
        assert "secret" not in str(refused.value.errors)
        assert [error["loc"] for error in refused.value.errors] == [["body", "id"], ["body", "…"]]

    def test_with_many_faults_is_told_of_the_first(self) -> None:
        unknown = b",".join(b'"k%d": 1' % number for number in range(1000))
        with pytest.raises(InvalidFields) as refused:
            parse_body(b"{" + unknown + b"}", Body)
        assert len(refused.value.errors) == 20
