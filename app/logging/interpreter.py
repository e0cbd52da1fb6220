"""What Python itself would print on standard error, as lines of the log: without any words.

An exception that nobody caught, in the process, in a thread, in a task or in a finaliser; and
warnings.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import warnings
from typing import TYPE_CHECKING, TextIO

import structlog

from app.logging.stacks import stack_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any

log = structlog.get_logger("app.process")

_GIVEN_UP = "unexpected connection_lost() call"


def report_to_the_log() -> None:
    """Have the interpreter tell the log what it would print. For a whole process."""
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread
    sys.unraisablehook = _unraisable
    warnings.showwarning = _warned


def watch_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Have an event loop tell the log of what nobody awaited."""
    loop.set_exception_handler(_unawaited)


def record_failure(stage: str, error: BaseException, **where: object) -> None:
    """The one record of an error that nobody foresaw: what it is and where, none of its words."""
    log.error("failed unexpectedly", stage=stage, **where, **_told(error))


def record_refusal(why: str) -> None:
    """Why a process ends, in words of ours."""
    log.error("ended", why=why)


def _told(error: BaseException) -> dict[str, object]:
    return {"error": type(error).__name__, "stack": stack_of(error)}


def _uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    record_failure("process", error.with_traceback(traceback))


def _uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        record_failure("thread", args.exc_value)


def _unraisable(args: sys.UnraisableHookArgs) -> None:
    if args.exc_value is not None:
        record_failure("finaliser", args.exc_value)


def _unawaited(_loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """What asyncio's own handler would print holds the exception's words, and the task's name."""
    error = context.get("exception")
    if not isinstance(error, BaseException):
        log.warning("the event loop complains", about=_kinds(context))
    elif _is_news(error):
        record_failure("task", error, about=_kinds(context))


def _is_news(error: BaseException) -> bool:
    """False for what asyncpg leaves behind of a connection that was given up in its first bytes.

    Whoever wanted it has said so.
    """
    return not (isinstance(error, ConnectionError) and str(error) == _GIVEN_UP)


def _kinds(context: Mapping[str, Any]) -> list[str]:
    """What the loop's complaint is about: which things, none of their values."""
    return sorted(set(context) - {"message", "exception"})


def _warned(
    message: Warning | str,  # noqa: ARG001
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    log.warning("a warning of Python's", kind=category.__name__, at=f"{filename}:{lineno}")
