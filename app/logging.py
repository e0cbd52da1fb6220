"""How every process logs: one line per fact, and nothing that a person wrote."""

from __future__ import annotations

import hashlib
import logging
import sys
from typing import TYPE_CHECKING, Literal

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from structlog.typing import Processor

    from tenancy.errors import StoaError
    from tenancy.principal import UserId

_GIVEN_UP = "unexpected connection_lost() call"


def configure_logging(log_format: Literal["console", "json"]) -> None:
    """Set up structlog, and send what libraries log through the same renderer.

    Libraries are heard from warnings on: what they say below that may hold addresses and data.
    """
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
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
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
    logging.getLogger("asyncio").addFilter(_is_news)
    for own in ("app", "tenancy"):
        logging.getLogger(own).setLevel(logging.INFO)


def tenant_reference(user_id: UserId) -> str:
    """A pseudonym for a user in logs: the same everywhere, and not their id."""
    return hashlib.blake2b(user_id.bytes, digest_size=6, person=b"stoa-log").hexdigest()


def stack_of(error: BaseException) -> list[str]:
    """Where an exception and its causes came from: places and classes, never messages."""
    return [line for each in _chain(error) for line in _described(each)]


def facts_of(error: StoaError) -> dict[str, str]:
    """What a log line says of an expected error: its code, and PostgreSQL's own if it has one."""
    sqlstate = getattr(error, "sqlstate", None)
    return {"code": error.code} | ({"sqlstate": sqlstate} if sqlstate else {})


def place_of(error: BaseException) -> str | None:
    """Where an exception was raised, as ``file.py:line function``; None where it never was."""
    traceback = error.__traceback__
    if traceback is None:
        return None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    return f"{code.co_filename.rpartition('/')[2]}:{traceback.tb_lineno} {code.co_name}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _described(error: BaseException) -> Iterator[str]:
    yield type(error).__name__
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        yield f"  {code.co_filename}:{traceback.tb_lineno} {code.co_name}"
        traceback = traceback.tb_next


def _is_news(record: logging.LogRecord) -> bool:
    """False for what asyncpg leaves behind of a connection that was given up in its first bytes.

    Whoever wanted it has said so.
    """
    error = record.exc_info[1] if record.exc_info else None
    return not (isinstance(error, ConnectionError) and str(error) == _GIVEN_UP)


def _without_exception_text(
    _logger: object, _name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Exceptions of libraries carry what people wrote: keep their places, drop their words."""
    info = event.pop("exc_info", None)
    if info is True:
        info = sys.exc_info()
    error = info[1] if isinstance(info, tuple) else info
    if isinstance(error, BaseException):
        event["stack"] = stack_of(error)
    return event


def _stack_as_text(
    _logger: object, _name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """The console's renderer takes a stack as one text."""
    if isinstance(stack := event.get("stack"), list):
        event["stack"] = "\n".join(stack)
    return event
