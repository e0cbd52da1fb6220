"""What libraries say, told without what they fill in: that may quote anything.

Of a line only the words are kept that stand in the library's own code.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from structlog.typing import EventDict, ProcessorReturnValue

UNTOLD = "a library says something"
"""In place of words that were put together while it ran."""


class LineFormatter(structlog.stdlib.ProcessorFormatter):
    """Renders lines of ours as they are, and those of libraries without their values."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        if not hasattr(record, "_logger"):  # what structlog marks its own with
            record = _without_values(record)
        return super().format(record)


def named(_logger: object, _method: str, event: EventDict) -> ProcessorReturnValue:
    """Say which library a line is of, and where in it: a processor of structlog's."""
    record: logging.LogRecord = event["_record"]
    event["logger"] = record.name
    event["at"] = f"{record.filename}:{record.lineno} {record.funcName}"
    event.pop("stack_info", None)
    return event


def take_over() -> None:
    """Send what every library logs through the root's handler, whatever it has set up itself."""
    for logger in tuple(logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.handlers.clear()
            logger.propagate = True


def _without_values(record: logging.LogRecord) -> logging.LogRecord:
    copy = logging.makeLogRecord(_fields(record))
    copy.msg = record.msg if _stands_in_code(record) else UNTOLD
    copy.args = None
    copy.stack_info = None
    return copy


def _fields(record: logging.LogRecord) -> Mapping[str, object]:
    return record.__dict__


def _stands_in_code(record: logging.LogRecord) -> bool:
    """Whether the words are a constant of the function that logs them: then they quote nothing."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - documented, and there is no other way
    while frame is not None:
        code = frame.f_code
        if code.co_filename == record.pathname and code.co_name == record.funcName:
            return isinstance(record.msg, str) and record.msg in code.co_consts
        frame = frame.f_back
    return False
