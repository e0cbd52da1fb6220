"""What fits what a person typed, in whatever script, however its owner wrote the names down."""

from __future__ import annotations

import pytest

from app.mentions.matching import best, folded


def found(query: str, *names: str) -> list[str]:
    return best(query, names, lambda name: [name], 10)


class TestMatching:
    @pytest.mark.parametrize(
        ("typed", "name"),
        [
            ("cafe", "CAFÉ"),
            ("café", "cafe"),
            ("か", "が"),  # the mark is none of Latin's
            ("שלום", "שָׁלוֹם"),
            ("strasse", "Straße"),
            ("fi", "ﬁ"),
        ],
    )
    def test_looks_at_neither_marks_nor_case(self, typed: str, name: str) -> None:
        assert found(typed, name) == [name]

    def test_puts_first_what_begins_a_word_whatever_stands_between_words(self) -> None:
        assert found("plan", "explanation", "travel_plan", "file://plan", "plans") == [
            "plans",
            "travel_plan",
            "file://plan",
            "explanation",
        ]

    def test_folds_plain_names_as_it_does_all_others(self) -> None:
        every = "".join(map(chr, range(128)))
        assert folded(every) == folded(f"{every}é")[:-1]
