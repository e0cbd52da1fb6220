"""What is asked of the server in a graph's name, and what one answer is made of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.models.call import ModelCall, read_call, require_model_call
from app.models.errors import ModelUnsupported
from app.models.usage import NOTHING, TokenCount, Usage
from app.models.whole import joined


def call(path: str = "/api/chat", **body: Any) -> ModelCall:
    return read_call(path, json.dumps({"model": "smollm2", **body}).encode())


def pinned(**options: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(call(options=options).pinned(2048, 64))
    return body


class TestTheRequest:
    @given(
        st.dictionaries(st.sampled_from(["num_ctx", "num_gpu", "num_thread", "numa"]), st.none())
    )
    def test_loads_the_model_as_everybody_does(self, options: dict[str, None]) -> None:
        assert pinned(**options)["options"] == {"num_ctx": 2048, "num_predict": 64}

    @given(st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), st.none()))
    def test_always_has_an_end(self, wanted: object) -> None:
        assert 0 < pinned(num_predict=wanted)["options"]["num_predict"] <= 64

    def test_is_for_a_stream_whatever_was_asked_for(self) -> None:
        whole = call(stream=False)
        assert not whole.is_streamed
        assert json.loads(whole.pinned(1, 1))["stream"] is True

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/api/tags"),
            ("POST", "/api/pull"),
            ("DELETE", "/api/chat"),
            ("POST", "/api/chat/"),
        ],
    )
    def test_for_anything_else_is_refused(self, method: str, path: str) -> None:
        with pytest.raises(ModelUnsupported):
            require_model_call(method, path)


class TestTextsToEmbed:
    @given(st.lists(st.text(max_size=3000), min_size=1, max_size=60))
    def test_are_asked_for_in_order_a_few_at_a_time(self, texts: list[str]) -> None:
        pieces = [each.body["input"] for each in call("/api/embed", input=texts).pieces()]
        assert [text for piece in pieces for text in piece] == texts
        assert all(len(piece) <= 16 for piece in pieces)
        assert all(len(json.dumps(piece)) <= 4 * 2048 for piece in pieces if len(piece) > 1)

    @pytest.mark.parametrize("given_input", ["text", [], ["text"], None])
    def test_are_asked_for_as_they_are_if_they_are_few(self, given_input: object) -> None:
        (piece,) = call("/api/embed", input=given_input).pieces()
        assert piece.body["input"] == given_input


class TestAWholeAnswer:
    def test_has_the_calls_of_tools_and_the_words_of_all_its_parts(self) -> None:
        tool = {"function": {"name": "f", "arguments": {}}}
        parts = [
            {"message": {"role": "assistant", "content": "a"}, "done": False},
            {"message": {"role": "assistant", "content": "", "tool_calls": [tool]}, "done": False},
            {"message": {"role": "assistant", "content": ""}, "done": True, "eval_count": 2},
        ]
        assert json.loads(joined(call(), parts)) == {
            "message": {"role": "assistant", "content": "a", "tool_calls": [tool]},
            "done": True,
            "eval_count": 2,
        }

    def test_of_embeddings_counts_all_its_calls(self) -> None:
        parts = [
            {"model": "m", "embeddings": [[1]], "prompt_eval_count": 2},
            {"model": "m", "embeddings": [[2], [3]], "prompt_eval_count": 5},
        ]
        whole = json.loads(joined(call("/api/embed"), parts))
        assert (whole["embeddings"], whole["prompt_eval_count"]) == ([[1], [2], [3]], 7)


class TestCounting:
    def test_nothing_is_known_of_a_server_that_said_nothing(self) -> None:
        assert TokenCount(call(), 2048).total() == NOTHING

    def test_a_piece_is_about_a_token_and_a_long_one_several(self) -> None:
        count = TokenCount(call(prompt="x" * 24), 2048)
        for text in ("", "word", "x" * 40):
            count.line({"message": {"content": text}, "done": False})
        assert count.total() == Usage(7, 12)

    def test_the_servers_counts_replace_what_was_guessed(self) -> None:
        count = TokenCount(call(), 2048)
        count.line({"message": {"content": "x" * 400}, "done": False})
        count.line({"done": True, "prompt_eval_count": 3, "eval_count": 100})
        assert count.total() == Usage(3, 100)

    @pytest.mark.parametrize("counted", [-1, "7", None, 10**30])
    def test_a_count_that_can_not_be_is_none_that_breaks_anything(self, counted: object) -> None:
        count = TokenCount(call(), 2048)
        count.line({"done": True, "prompt_eval_count": counted, "eval_count": 1})
        assert 0 <= count.total().prompt_tokens < 2**31

    def test_a_prompt_that_was_cut_off_is_no_longer_than_the_window(self) -> None:
        count = TokenCount(call(messages=[{"content": "x" * 100_000}]), 2048)
        count.cut_off()
        assert count.total() == Usage(2048, 0)
