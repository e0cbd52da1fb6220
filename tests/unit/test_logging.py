"""Log lines: an error's places, never its words, whoever says them and in both formats."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

import pytest
import structlog

from app import logging as app_logging
from app.logging import configure_logging, stack_of, watch_loop

SAID = "what somebody said in confidence"


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    for place, name in (
        (logging, "raiseExceptions"),
        (sys, "excepthook"),
        (sys, "unraisablehook"),
        (threading, "excepthook"),
        (warnings, "showwarning"),
        (app_logging, "_configured"),
    ):
        monkeypatch.setattr(place, name, getattr(place, name))
    # One that has logged stays as it was set up then.
    fresh = structlog.get_logger("app.process")
    monkeypatch.setattr(app_logging.interpreter, "log", fresh)
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
async def watched_loop() -> AsyncIterator[asyncio.AbstractEventLoop]:
    loop = asyncio.get_running_loop()
    handler = loop.get_exception_handler()
    watch_loop(loop)
    yield loop
    loop.set_exception_handler(handler)


def fail() -> None:
    raise RuntimeError(SAID)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    printed = capsys.readouterr()
    assert SAID not in printed.out + printed.err
    return [json.loads(line) for line in printed.err.splitlines()]


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_an_exception_is_told_by_its_places(
    log_format: Literal["console", "json"], capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(log_format)
    log = structlog.get_logger("app.test")
    try:
        fail()
    except RuntimeError as error:
        log.exception("first")
        log.error("second", stack=stack_of(error))  # noqa: TRY400
        logging.getLogger("library").exception("third")
    printed = capsys.readouterr().err
    assert all(event in printed for event in ("first", "second", "third"))
    assert printed.count(" fail") == 3
    assert SAID not in printed


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_a_line_that_cannot_be_rendered_quotes_nothing(
    log_format: Literal["console", "json"], capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(log_format)

    class Unprintable:
        def __repr__(self) -> str:
            raise ValueError(SAID)

    structlog.get_logger("app.test").warning("lost", value=Unprintable())
    assert SAID not in capsys.readouterr().err


class TestWhatALibrarySays:
    def test_is_told_as_it_stands_in_its_code_without_what_it_fills_in(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        configure_logging("json")
        logging.getLogger("library").warning("Lost %r for good", SAID)
        (line,) = lines(capsys)
        assert (line["event"], line["logger"]) == ("Lost %r for good", "library")
        assert line["at"].startswith("test_logging.py:")

    @pytest.mark.parametrize("given", [SAID, f"Lost {SAID}", f"Lost {SAID} after %s"])
    def test_is_not_told_where_it_put_its_words_together(
        self, given: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        configure_logging("json")
        logging.getLogger("library").warning(given, *["x"] * given.count("%s"), stack_info=True)
        (line,) = lines(capsys)
        assert line["event"] == "a library says something"

    def test_comes_once_whatever_the_library_has_set_up_itself(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        own = logging.getLogger("library.of.its.own")
        own.addHandler(logging.StreamHandler(sys.stderr))
        own.propagate = False
        configure_logging("json")
        own.warning("Lost %s", SAID)
        assert [line["event"] for line in lines(capsys)] == ["Lost %s"]


class TestWhatPythonWouldPrint:
    def test_of_a_thread_is_one_record(self, capsys: pytest.CaptureFixture[str]) -> None:
        configure_logging("json")
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        (record,) = lines(capsys)
        assert (record["stage"], record["error"]) == ("thread", "RuntimeError")
        assert any(place.endswith(" fail") for place in record["stack"])

    def test_of_a_process_is_one_record(self, capsys: pytest.CaptureFixture[str]) -> None:
        configure_logging("json")
        try:
            fail()
        except RuntimeError as error:
            sys.excepthook(RuntimeError, error, error.__traceback__)
        (record,) = lines(capsys)
        assert (record["stage"], record["level"]) == ("process", "error")

    def test_of_a_warning_is_its_kind_and_place(self, capsys: pytest.CaptureFixture[str]) -> None:
        configure_logging("json")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = app_logging.interpreter._warned
            warnings.warn(SAID, ResourceWarning, stacklevel=1)
        (line,) = lines(capsys)
        assert line["kind"] == "ResourceWarning"
        assert "test_logging.py" in line["at"]

    async def test_of_a_task_that_nobody_awaited_is_one_record(
        self, watched_loop: asyncio.AbstractEventLoop, capsys: pytest.CaptureFixture[str]
    ) -> None:
        configure_logging("json")
        forgotten = watched_loop.create_future()
        forgotten.set_exception(RuntimeError(SAID))
        del forgotten
        (record,) = lines(capsys)
        assert (record["stage"], record["about"]) == ("task", ["future"])

    async def test_of_a_connection_that_was_given_up_is_not_told_again(
        self, watched_loop: asyncio.AbstractEventLoop, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """What asyncpg forgets where a server goes away while it is being connected to."""
        configure_logging("json")
        for words in ("unexpected connection_lost() call", "other"):
            forgotten = watched_loop.create_future()
            forgotten.set_exception(ConnectionError(words))
            del forgotten
        assert [record["error"] for record in lines(capsys)] == ["ConnectionError"]


class TestAStack:
    def test_names_all_that_a_group_holds_and_what_each_came_from(self) -> None:
        def fail_twice() -> None:
            try:
                fail()
            except RuntimeError as error:
                raise KeyError(SAID) from error

        with pytest.raises(KeyError) as raised:
            fail_twice()
        told = stack_of(ExceptionGroup(SAID, [raised.value, ValueError(SAID)]))
        assert [line for line in told if not line.startswith(" ")] == [
            "ExceptionGroup",
            "KeyError",
            "RuntimeError",
            "ValueError",
        ]
        assert SAID not in "".join(told)

    def test_that_never_ended_is_told_by_both_ends(self) -> None:
        def deeper() -> None:
            deeper()

        with pytest.raises(RecursionError) as raised:
            deeper()
        told = stack_of(raised.value)
        assert len(told) == 201
        assert told[0] == "RecursionError"
        assert told[-1].endswith(" deeper")
