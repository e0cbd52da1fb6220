"""The documentation names only what there is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from app.cli.settings import settings_page
from app.settings import PREFIX, Settings
from tests.unit.docs.pages import (
    DOCS,
    PAGES,
    RECORDS,
    ROOT,
    functions_in,
    links_in,
    paths_in,
    settings_in,
    text_of,
)

if TYPE_CHECKING:
    from pathlib import Path

NOT_IN_THE_REPOSITORY = {"stoa.toml", "deploy/.env", "deploy/secrets"}
"""Made by an operator."""

every_page = pytest.mark.parametrize(
    "page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES]
)
every_record = pytest.mark.parametrize("record", RECORDS, ids=[path.name for path in RECORDS])


class TestAPage:
    @every_page
    def test_names_only_files_that_exist(self, page: Path) -> None:
        missing = {path for path in paths_in(page) if not (ROOT / path).exists()}
        assert missing <= NOT_IN_THE_REPOSITORY

    @every_page
    def test_links_only_to_pages_that_exist(self, page: Path) -> None:
        assert not {link for link in links_in(page) if not (page.parent / link).exists()}

    @every_page
    def test_names_only_settings_that_exist(self, page: Path) -> None:
        known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
        known |= {f"{name}_FILE" for name in known}
        assert not {
            name
            for name in settings_in(page) - known
            if not name.startswith(("STOA_TEST_", "STOA_BENCH_"))
        }

    @every_page
    def test_names_only_database_functions_that_exist(self, page: Path) -> None:
        sql = "".join(path.read_text("utf-8") for path in (ROOT / "tenancy/sql").glob("*.sql"))
        assert not {name for name in functions_in(page) if f"FUNCTION {name}(" not in sql}


class TestTheSettingsPage:
    def test_is_what_the_code_says(self) -> None:
        committed = (DOCS / "settings.md").read_text(encoding="utf-8")
        assert committed == settings_page(), "run: .venv/bin/stoa settings > docs/settings.md"

    def test_explains_every_setting(self) -> None:
        undocumented = [n for n, field in Settings.model_fields.items() if not field.description]
        assert undocumented == []


class TestADecision:
    @every_record
    def test_names_what_holds_it(self, record: Path) -> None:
        held_by = text_of(record).partition("Held by:")[2]
        assert re.search(r"`(tests/[\w/]+\.py|pyproject\.toml)`", held_by)

    @every_record
    def test_names_contracts_by_the_names_they_have(self, record: Path) -> None:
        held_by = text_of(record).partition("Held by:")[2]
        contracts = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        for name in re.findall(r'"([^"]+)"', held_by):
            assert f'name = "{name}"' in contracts

    @every_record
    def test_is_short(self, record: Path) -> None:
        assert len(record.read_text(encoding="utf-8").splitlines()) <= 50

    def test_is_listed_under_the_title_it_has(self) -> None:
        listed = (DOCS / "decisions/README.md").read_text(encoding="utf-8")
        for record in RECORDS:
            number, title = record.read_text(encoding="utf-8").splitlines()[0].split(": ", 1)
            row = rf"\| \[{number[2:]}\]\({re.escape(record.name)}\) \| {re.escape(title)}"
            assert re.search(row, listed), record.name

    def test_has_the_next_number(self) -> None:
        assert [path.name[:4] for path in RECORDS] == [f"{n + 1:04}" for n in range(len(RECORDS))]
