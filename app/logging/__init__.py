"""How every process logs: one line per fact, and nothing that a person wrote."""

from __future__ import annotations

import hashlib
import logging
import sys
from typing import TYPE_CHECKING, Literal

import structlog

from app.logging.interpreter import (
    record_failure,
    record_refusal,
    report_to_the_log,
    watch_loop,
)
from app.logging.libraries import LineFormatter, named, take_over
from app.logging.stacks import facts_of, place_of, stack_of

if TYPE_CHECKING:
    from structlog.typing import Processor

    from tenancy.principal import UserId

__all__ = [
    "configure_logging",
    "configured_format",
    "facts_of",
    "place_of",
    "record_failure",
    "record_refusal",
    "stack_of",
    "tenant_reference",
    "watch_loop",
]


LogFormat = Literal["console", "json"]
_configured: LogFormat | None = None


def configure_logging(log_format: LogFormat) -> None:
    """Set up structlog, and send what libraries and Python itself say through the same renderer.

    Libraries are heard from warnings on, and without the values in their words.
    """
    global _configured  # noqa: PLW0603 - a process logs in one way
    _configured = log_format
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderers: list[Processor] = (
        [structlog.processors.JSONRenderer()]
        if log_format == "json"
        else [_stack_as_text, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    )
    # A line that cannot be rendered is lost: what Python prints instead quotes its exception.
    logging.raiseExceptions = False
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    take_over()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        LineFormatter(
            foreign_pre_chain=[*shared, named],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _without_exception_text,
                *renderers,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    for own in ("app", "tenancy"):
        logging.getLogger(own).setLevel(logging.INFO)
    report_to_the_log()


def configured_format() -> LogFormat | None:
    """How this process logs; None before that is settled."""
    return _configured


def tenant_reference(user_id: UserId) -> str:
    """A pseudonym for a user in logs: the same everywhere, and not their id."""
    return hashlib.blake2b(user_id.bytes, digest_size=6, person=b"stoa-log").hexdigest()


def _without_exception_text(
    _logger: object, _name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Exceptions of libraries carry what people wrote: keep their places, drop their words."""
    info = event.pop("exc_info", None)
    if info is True:
        info = sys.exc_info()
    error = info[1] if isinstance(info, tuple) else info
    if isinstance(error, BaseException):
        event.setdefault("error", type(error).__name__)
        event["stack"] = stack_of(error)
    return event


def _stack_as_text(
    _logger: object, _name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """The console's renderer takes a stack as one text."""
    if isinstance(stack := event.get("stack"), list):
        event["stack"] = "\n".join(stack)
    return event
