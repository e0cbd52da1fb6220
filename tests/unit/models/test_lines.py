"""Reading an answer line by line."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.models.errors import ModelFailed, ModelMalformed, ModelStreamCut
from app.models.failures import failure_of_pool
from app.models.lines import MAX_LINE, AnswerCheck, LineReader, only_loaded

LINES = [b'{"a":1}', '{"text":"grüß 你"}'.encode(), b'{"done":true}']


class TestCutting:
    @given(st.lists(st.integers(0, 40), max_size=8))
    def test_lines_are_the_same_however_the_network_cuts_them(self, cuts: list[int]) -> None:
        body = b"\n".join(LINES)
        edges = [0, *sorted(cuts), len(body)]
        reader = LineReader()
        read = [line for a, b in pairwise(edges) for line in reader.feed(body[a:b])]
        assert read + reader.rest() == LINES

    def test_a_line_without_end_is_refused(self) -> None:
        with pytest.raises(ModelMalformed):
            LineReader().feed(b"x" * (MAX_LINE + 1))


class TestChecking:
    @pytest.mark.parametrize(
        "line",
        [
            b"<html>",
            b"[]",
            b"null",
            b'{"message":"text"}',
            b'{"message":{"content":7}}',
            b'{"response":[]}',
            b'{"message":{"tool_calls":{}}}',
            b'{"message":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}',
            b'{"message":{"tool_calls":[{"function":{"arguments":{}}}]}}',
            b'{"message":"\xff"}',
        ],
    )
    def test_what_is_no_line_of_an_answer_is_malformed(self, line: bytes) -> None:
        with pytest.raises(ModelMalformed) as refused:
            AnswerCheck().line(line)
        assert failure_of_pool(refused.value) == "failed"

    @pytest.mark.parametrize(
        "argument", [b"[" * 64 + b"]" * 64, b"[" * 100_000, b"9" * 5_000], ids=len
    )
    def test_what_only_a_model_writes_is_not_held_against_its_server(self, argument: bytes) -> None:
        """Others' calls would wait for the server, as long as somebody has the model write it."""
        call = b'{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"a":%b}}}]}}'
        with pytest.raises(ModelMalformed) as refused:
            AnswerCheck().line(call % argument)
        assert failure_of_pool(refused.value) is None

    def test_an_error_line_is_a_failure(self) -> None:
        with pytest.raises(ModelFailed):
            AnswerCheck().line(b'{"error":"model runner has unexpectedly stopped"}')

    def test_an_answer_that_was_not_done_is_cut(self) -> None:
        check = AnswerCheck()
        check.line(b'{"message":{"role":"assistant","content":"Hi"},"done":false}')
        with pytest.raises(ModelStreamCut):
            check.end()

    def test_a_done_line_may_carry_tool_calls_and_no_reason(self) -> None:
        check = AnswerCheck()
        call = {"function": {"name": "f", "arguments": {}}}
        check.line(json.dumps({"message": {"tool_calls": [call]}, "done": True}).encode())
        check.end()


class TestOnlyLoading:
    def test_a_load_with_words_is_an_answer(self) -> None:
        part = {"done": True, "done_reason": "load", "message": {"content": "Hi"}}
        assert not only_loaded(part)
        assert only_loaded({**part, "message": {"content": ""}})
