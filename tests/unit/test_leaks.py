"""What the tests' own search for leaks finds, and what a run of tests ends with that has one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.support import leaks

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJzb21lYm9keSJ9.c2lnbmF0dXJl"


@pytest.fixture(autouse=True)
def nothing_found() -> Iterator[None]:
    """What is found here on purpose is nobody's leak."""
    with patch.object(leaks, "_found", []), patch.object(leaks, "_searched", Counter[str]()):
        yield


class TestTheSearch:
    @pytest.mark.parametrize(
        "line",
        [
            '{"event": "run failed", "text": "The Canary sings"}',
            f"GET /threads {TOKEN}",
            "authorization: Bearer abcdefghijklmnop",
            "cannot connect to postgresql://stoa:hunter2@localhost:5432/stoa",
            "-----BEGIN EC PRIVATE KEY-----",
        ],
    )
    def test_finds_what_nobody_may_read(self, line: str) -> None:
        assert len(leaks.search("log", line, "a test")) == 1

    @pytest.mark.parametrize(
        "line",
        [
            '{"event": "request", "route": "/threads/{thread_id}", "status": 404}',
            "Bearer",
            "an assertion in `Authorization: Bearer`, please",
            "postgresql://localhost:5432/stoa",
            "in /pytest-of-somebody/pytest-0/test_no_canary0/stoa.toml: STOA_MODEL",
        ],
    )
    def test_finds_nothing_in_what_everybody_may(self, line: str) -> None:
        assert leaks.search("log", line, "a test") == []


class TestARunOfTests:
    @pytest.mark.parametrize(("says", "status"), [("the lighthouse", 0), ("the canary", 1)])
    def test_fails_where_one_of_them_writes_a_canary(
        self, tmp_path: Path, says: str, status: int
    ) -> None:
        (tmp_path / "test_it.py").write_text(f"def test_it(): print({says!r}.upper())")
        plugins = ("-p", "tests.support.leaks", "-p", "no:cacheprovider")
        ended = subprocess.run(
            (sys.executable, "-m", "pytest", "-q", *plugins, "--rootdir", tmp_path, tmp_path),
            cwd=ROOT,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            check=False,
            text=True,
        )
        assert "1 passed" in ended.stdout, ended.stdout + ended.stderr
        assert ended.returncode == status
