"""Whatever a conversation or a file is called, every system takes the name it gets."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.export import names as exported
from app.export.names import MOST_BYTES, UNTITLED, Names, safe_name


class TestAName:
    @pytest.mark.parametrize(
        ("said", "named"),
        [
            ("Travel plans", "Travel plans"),
            ("  two\n lines\t", "two lines"),
            ("../../etc/passwd", "etc passwd"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("C:\\Windows", "C Windows"),
            ("what? <b>|*", "what b"),
            ("nul", "_nul"),
            ("COM1.tar.gz", "_COM1.tar.gz"),
            ("LPT\u00b9", "_LPT\u00b9"),
            ("console", "console"),
            ("ends with a dot.", "ends with a dot"),
            (".hidden", "hidden"),
            ("\u202egpj.exe", "gpj.exe"),
            ("a\0b\x1bc", "a b c"),
            ("\ud800", UNTITLED),
            ("...", UNTITLED),
            ("", UNTITLED),
            ("Größe 日本 🚲", "Größe 日本 🚲"),
        ],
    )
    def test_is_like_what_was_said(self, said: str, named: str) -> None:
        assert safe_name(said) == named

    @given(st.text(max_size=300))
    def test_is_one_part_of_a_path_on_every_system(self, said: str) -> None:
        name = safe_name(said)
        assert 0 < len(name.encode()) <= MOST_BYTES + 1
        assert not set(name) & set('<>:"/\\|?*')
        assert name == name.strip(" .")
        assert not any(unicodedata.category(each) in ("Cc", "Cf", "Cs") for each in name)

    def test_keeps_its_ending_when_it_is_cut(self) -> None:
        assert safe_name("é" * 300 + ".md").endswith("é.md")


class TestTheNamesInAFolder:
    def test_differ_also_where_capital_letters_make_no_difference(self) -> None:
        names = Names()
        said = ["a.txt", "A.TXT", "a (2).txt", "?a.txt", "STRASSE", "stra\u00dfe"]
        assert [names.new(each) for each in said] == [
            *("a.txt", "A (2).TXT", "a (2) (2).txt", "a (3).txt"),
            *("STRASSE", "stra\u00dfe (2)"),
        ]

    def test_are_found_as_quickly_where_very_many_are_alike(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tried = 0

        def counted(name: str) -> str:
            nonlocal tried
            tried += 1
            return name

        monkeypatch.setattr(exported, "_folded", counted)
        names = Names()
        said = [f"a{chr(0x200B)}{'.' * number}" for number in range(50)]
        assert len({names.new(each) for each in said}) == 50
        assert tried <= 6 * 50
