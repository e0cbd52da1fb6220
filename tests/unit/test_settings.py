"""Settings that cannot be used: each stops the start with one message that says what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from app.settings import SettingsError, load_settings

Complaint = Callable[..., str]


@pytest.fixture
def complaint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Complaint:
    """What is said about these variables, and this ``stoa.toml``."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("STOA_")]:
        monkeypatch.delenv(name)

    def said(toml: str | None = None, **environment: str) -> str:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        if toml is not None:
            (tmp_path / "stoa.toml").write_text(toml, encoding="utf-8")
        with pytest.raises(SettingsError) as caught:
            load_settings().required("database_url")
        return str(caught.value)

    return said


class TestADatabaseUrl:
    @pytest.mark.parametrize(
        "dsn",
        [
            "hushhush",
            "host=localhost password=hushhush",
            "mysql://stoa:hushhush@localhost/stoa",
            "postgresql+asyncpg://stoa:hushhush@localhost/stoa",
            "postgresql://stoa:hushhush@localhost:port/stoa",
        ],
    )
    def test_that_is_none_is_refused_without_being_shown(
        self, complaint: Complaint, dsn: str
    ) -> None:
        said = complaint(STOA_DATABASE_URL=dsn)
        assert said.startswith("STOA_DATABASE_URL: must look like postgresql://")
        assert "hushhush" not in said

    @pytest.mark.parametrize(
        "dsn",
        [
            "postgresql://stoa:p/w:@x@localhost:5432/stoa",
            "postgres://stoa@[::1]:5432/stoa?application_name=a@b",
            "postgresql:///stoa?host=/var/run/postgresql",
        ],
    )
    def test_of_every_usual_form_is_taken(
        self, complaint: Complaint, monkeypatch: pytest.MonkeyPatch, dsn: str
    ) -> None:
        monkeypatch.setenv("STOA_DATABASE_URL", dsn)
        assert load_settings().required("database_url") == dsn

    def test_that_is_empty_is_missing(self, complaint: Complaint) -> None:
        assert complaint(STOA_DATABASE_URL="").startswith("Set STOA_DATABASE_URL: ")


class TestAnUnknownName:
    def test_in_the_environment_is_named_with_the_nearest_that_exists(
        self, complaint: Complaint
    ) -> None:
        said = complaint(STOA_DATABSE_URL="x", STOA_XYZZY="x")
        assert "Unknown setting: STOA_DATABSE_URL (did you mean STOA_DATABASE_URL?)" in said
        assert ", STOA_XYZZY. " in said

    def test_in_the_file_is_named_as_it_stands_there(self, complaint: Complaint) -> None:
        said = complaint('databse_url = "x"')
        assert said.startswith(
            "Unknown setting in stoa.toml: databse_url (did you mean database_url?)."
        )


class TestAPool:
    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("capacity = 0", "[[pool]] 2, capacity: Input should be greater than or equal to 1"),
            ("capasity = 3", "Unknown setting of [[pool]] 2: capasity (did you mean capacity?)."),
        ],
    )
    def test_is_named_by_its_place_in_the_file(
        self, complaint: Complaint, line: str, said: str
    ) -> None:
        pools = [f'[[pool]]\nname = "{name}"\nurl = "http://{name}.test"' for name in ("a", "b")]
        assert complaint("\n".join([*pools, line])).startswith(said)

    def test_that_is_no_table_of_a_list_is_told_what_to_be(self, complaint: Complaint) -> None:
        said = complaint('[pool]\nname = "a"')
        assert said.startswith("Pools are tables, each under a [[pool]] of its own in stoa.toml")


class TestAFile:
    def test_that_is_no_toml_is_named_with_the_line(self, complaint: Complaint) -> None:
        said = complaint("model = 'm'\ndatabase_url = \n")
        assert said.startswith("stoa.toml cannot be read: ")
        assert "line 2" in said


class TestSettingsThatDoNotFitEachOther:
    def test_are_both_named(self, complaint: Complaint) -> None:
        said = complaint(STOA_LEASE_SECONDS="5")
        assert said.startswith("STOA_LEASE_SECONDS must be at least twice STOA_HEARTBEAT_SECONDS")


class TestATimeToDecide:
    @pytest.mark.parametrize("seconds", ["0", "inf", "nan", "1e18"])
    def test_that_no_calendar_has_is_refused(self, complaint: Complaint, seconds: str) -> None:
        said = complaint(STOA_APPROVAL_SECONDS=seconds)
        assert said.startswith("STOA_APPROVAL_SECONDS: Input should be")


class TestAVariableThatNobodyFilledIn:
    @pytest.mark.parametrize(
        "name", ["embedding_model", "public_url", "signing_keys", "tombstone_folder", "vault_keys"]
    )
    def test_is_no_setting(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv(f"STOA_{name.upper()}", "")
        assert getattr(load_settings(), name) is None
