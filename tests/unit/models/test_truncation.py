"""Which turns of a long conversation the local model leaves out."""

from __future__ import annotations

import pytest

from app.dev.model.requests import Message
from app.dev.model.truncation import TooLong, shorten

RULES = Message(role="system", content="rules")
TURNS = [Message(role="user", content=f"{n:03d} {'x' * 96}") for n in range(20)]


def too_many(tokens: int, context: int = 1000) -> dict[str, object]:
    return {"n_prompt_tokens": tokens, "n_ctx": context}


class TestShortening:
    def test_the_oldest_turns_go_and_the_systems_words_stay(self) -> None:
        kept = shorten([RULES, *TURNS], too_many(2000))
        assert kept[0] is RULES
        assert kept[1:] == TURNS[-len(kept) + 1 :]
        assert 5 < len(kept) < 9

    def test_at_least_one_turn_goes_each_time(self) -> None:
        assert len(shorten(TURNS, too_many(1001))) < len(TURNS)
        assert len(shorten(TURNS[:2], too_many(1, context=1000))) == 1

    def test_a_last_message_that_is_too_long_alone_is_refused(self) -> None:
        with pytest.raises(TooLong, match="context length"):
            shorten([RULES, TURNS[0]], too_many(2000))

    def test_an_error_about_something_else_is_passed_on(self) -> None:
        with pytest.raises(TooLong, match="bad grammar"):
            shorten(TURNS, {"message": "bad grammar"})
