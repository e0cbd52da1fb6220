"""Log lines: an error's places, never its words, in both formats."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Literal

import pytest
import structlog

from app.logging import configure_logging, stack_of

SAID = "what somebody said in confidence"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, raising = root.handlers, root.level, logging.raiseExceptions
    yield
    root.handlers, logging.raiseExceptions = handlers, raising
    root.setLevel(level)
    structlog.reset_defaults()


def fail() -> None:
    raise RuntimeError(SAID)


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


async def test_a_connection_that_was_given_up_is_not_told_of_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What asyncpg forgets where a server goes away while it is being connected to."""
    configure_logging("json")
    for error in (ConnectionError("unexpected connection_lost() call"), ConnectionError("other")):
        forgotten = asyncio.get_running_loop().create_future()
        forgotten.set_exception(error)
        del forgotten
    assert capsys.readouterr().err.count("never retrieved") == 1
