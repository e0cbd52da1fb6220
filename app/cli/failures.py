"""What a failed command says, and the status it ends with."""

from __future__ import annotations

import sys

FAILED = 1
WRONG_USE = 2


def exit_status(error: Exception) -> int:
    """Print a known failure's message to standard error and return the status to end with.

    Raises:
        Exception: the error itself, if it is one that nobody foresaw.
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
            raise error
    print(f"stoa: {error}", file=sys.stderr)  # noqa: T201
    return status
