"""What of an exception may be told: its class, where it came from, its code. Never its words.

Those of libraries quote what people wrote: a database's names the values of the row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from tenancy.errors import StoaError

_MOST_LINES = 200
"""Of a stack: one that never ended is told by both of its ends."""


def stack_of(error: BaseException) -> list[str]:
    """Where an exception and its causes came from: places and classes, never messages."""
    lines = [line for each in _chain(error) for line in _described(each)]
    if len(lines) <= _MOST_LINES:
        return lines
    half = _MOST_LINES // 2
    return [*lines[:half], f"  … {len(lines) - 2 * half} more", *lines[-half:]]


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
    """The exception, what it came from, and what a group holds; each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting.append(current.__cause__ or current.__context__)
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(reversed(current.exceptions))


def _described(error: BaseException) -> Iterator[str]:
    yield type(error).__name__
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        yield f"  {code.co_filename}:{traceback.tb_lineno} {code.co_name}"
        traceback = traceback.tb_next
