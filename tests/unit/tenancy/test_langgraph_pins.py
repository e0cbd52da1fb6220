"""What of LangGraph's inside this code stands on. A new version that differs fails here first."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from importlib.metadata import version

import ormsgpack
import pytest
from langgraph.checkpoint.postgres import base
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde import _msgpack
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_SINGLE_ARG, JsonPlusSerializer
from langgraph.checkpoint.serde.types import ERROR
from langgraph.store.postgres.aio import AsyncPostgresStore

from tenancy.checkpoints import assert_strict_deserialization, batch, saver, store

STATEMENTS = {
    "UPSERT_CHECKPOINTS_SQL": "e2cd39f12c520a16",
    "UPSERT_CHECKPOINT_BLOBS_SQL": "ff99c38464885bdc",
    "UPSERT_CHECKPOINT_WRITES_SQL": "a1b0948d568ed564",
    "INSERT_CHECKPOINT_WRITES_SQL": "fe2c6da415745a49",
    "SELECT_SQL": "30c981d76fc864fc",
    "SELECT_PENDING_SENDS_SQL": "4fcd7fe97bc664e3",
}


class TestTheSaver:
    def test_is_the_version_that_was_read(self) -> None:
        assert version("langgraph-checkpoint-postgres") == "3.2.0"

    @pytest.mark.parametrize(("name", "digest"), STATEMENTS.items(), ids=STATEMENTS)
    def test_says_what_it_said_when_its_tables_were_rewritten(self, name: str, digest: str) -> None:
        sql = getattr(base, name)
        assert getattr(base.BasePostgresSaver, name) == sql
        assert hashlib.sha256(sql.encode()).hexdigest()[:16] == digest

    def test_creates_what_the_first_revision_creates(self) -> None:
        """A new migration of the library's needs a revision of ours."""
        assert len(base.MIGRATIONS) == 10

    @pytest.mark.parametrize("method", ["aput", "aput_writes", "aget_tuple", "alist"])
    def test_reaches_the_database_through_its_cursor_only(self, method: str) -> None:
        source = inspect.getsource(getattr(AsyncPostgresSaver, method))
        assert "self._cursor(" in source
        for other in ("self.conn", "self.pipe", "get_connection"):
            assert other not in source

    def test_marks_its_writes_by_a_pipeline(self) -> None:
        for method in (AsyncPostgresSaver.aput, AsyncPostgresSaver.aput_writes):
            assert "self._cursor(pipeline=True)" in inspect.getsource(method)
        assert list(inspect.signature(AsyncPostgresSaver._cursor).parameters) == [
            "self",
            "pipeline",
        ]

    def test_names_the_channel_of_errors_as_we_do(self) -> None:
        internal = importlib.import_module("langgraph._internal._constants")
        assert ERROR == internal.ERROR == "__error__"


class TestTheStore:
    def test_is_reached_through_its_cursor_only(self) -> None:
        for method in ("_execute_batch", "abatch"):
            source = inspect.getsource(getattr(AsyncPostgresStore, method))
            assert "get_connection" not in source
        assert "self._cursor(pipeline=True)" in inspect.getsource(AsyncPostgresStore._execute_batch)

    def test_sets_nothing_in_its_constructor_that_ours_leaves_out(self) -> None:
        source = inspect.getsource(AsyncPostgresStore.__init__)
        ours = inspect.getsource(store._StoreRows.__init__)
        # Of its pool, its loop and its sweeper we use nothing.
        unused = {"conn", "loop", "supports_pipeline", "_ttl_sweeper_task", "_ttl_stop_event"}
        assert set(re.findall(r"self\.(\w+)(?:: [^=]+)? = ", source)) - unused == set(
            re.findall(r"self\.(\w+) = ", ours)
        ) - {"_task", "_pool", "_user_id", "_fence"}

    def test_creates_what_the_first_revision_creates(self) -> None:
        assert len(AsyncPostgresStore.MIGRATIONS) == 4


class TestAnUpgradeThatChangedTheSql:
    @pytest.mark.parametrize("name", [n for n in STATEMENTS if "PENDING" not in n])
    def test_fails_at_import(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        changed = getattr(base, name).replace("thread_id", "thread", 1)
        monkeypatch.setattr(base, name, changed)
        room = saver if name == "SELECT_SQL" else batch
        spec = importlib.util.spec_from_file_location("changed", room.__file__)
        assert spec is not None
        assert spec.loader is not None
        with pytest.raises(ImportError, match="has changed"):
            spec.loader.exec_module(importlib.util.module_from_spec(spec))


def hostile_row() -> tuple[str, bytes]:
    """A stored value that asks to be made by calling ``os.getenv``."""
    call = ormsgpack.packb(("os", "getenv", "STOA_CANARY"))
    return "msgpack", ormsgpack.packb(ormsgpack.Ext(EXT_CONSTRUCTOR_SINGLE_ARG, call))


class TestStrictDeserialization:
    def test_is_in_force(self) -> None:
        assert _msgpack.STRICT_MSGPACK_ENABLED
        assert_strict_deserialization()

    def test_a_crafted_row_calls_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("STOA_CANARY", "called")
        permissive = JsonPlusSerializer(allowed_msgpack_modules=True)
        assert permissive.loads_typed(hostile_row()) == "called"  # the row is a real attack
        assert JsonPlusSerializer().loads_typed(hostile_row()) == "STOA_CANARY"

    @pytest.mark.parametrize(
        ("before", "value", "fine"),
        [
            ("", None, True),
            ("", "true", True),
            ("", "false", False),
            ("import langgraph.checkpoint.serde.jsonplus;", None, False),
            ("import langgraph.checkpoint.serde.jsonplus;", "true", True),
        ],
    )
    def test_a_process_without_it_does_not_start(
        self, before: str, value: str | None, fine: bool
    ) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "LANGGRAPH_STRICT_MSGPACK"}
        if value is not None:
            environment["LANGGRAPH_STRICT_MSGPACK"] = value
        done = subprocess.run(
            [sys.executable, "-c", f"{before}import tenancy.checkpoints"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode == 0) is fine, done.stderr
        assert fine or "LANGGRAPH_STRICT_MSGPACK must be `true`" in done.stderr
