"""What a failed command says, and the status it ends with."""

from __future__ import annotations

import sys
from typing import Literal

FAILED = 1
WRONG_USE = 2


def exit_status(error: Exception) -> int:
    """Tell standard error why a command failed, and return the status to end with.

    A failure that nobody foresaw leaves its one record there, without its words: they may quote
    what people wrote.
    """
    # Only now: a command that does not fail should not wait for these.
    from app.dev.errors import DevelopmentError
    from app.settings import SettingsError
    from tenancy.errors import StoaError

    match error:
        case SettingsError():
            status = WRONG_USE
        case DevelopmentError() | StoaError():
            status = FAILED
        case _:
            _record(error)
            return FAILED
    _tell(str(error))
    return status


def _tell(why: str) -> None:
    """In words; or as a line of the log, once a process whose log programs read writes one."""
    from app.logging import configured_format, record_refusal

    if configured_format() == "json":
        record_refusal(why)
    else:
        print(f"stoa: {why}", file=sys.stderr)  # noqa: T201


def _record(error: Exception) -> None:
    from app.logging import configure_logging, configured_format, record_failure

    if configured_format() is None:
        configure_logging(_log_format())
    record_failure("command", error)


def _log_format() -> Literal["console", "json"]:
    """As the settings say, if they can be read."""
    from app.settings import SettingsError, load_settings

    try:
        return load_settings().log_format
    except SettingsError:
        return "console"
