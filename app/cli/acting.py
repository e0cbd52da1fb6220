"""Who runs a command, and which: what goes on record with what it does."""

from __future__ import annotations

import os
import pwd
from contextvars import ContextVar

import typer

from tenancy.acts import Act

_PROGRAM = "stoa"
_command: ContextVar[str] = ContextVar("command", default=_PROGRAM)


def note_command(context: typer.Context) -> None:
    """Remember which command of a group is run: the callback of every group of ``stoa admin``."""
    names = [str(context.invoked_subcommand)]
    group: typer.Context | None = context
    while group is not None and group.parent is not None:  # the program's own name may be anything
        names.append(str(group.info_name))
        group = group.parent  # type: ignore[assignment]
    _command.set(" ".join((_PROGRAM, *reversed(names))))


def command_act() -> Act:
    """The command that is being run, under the account whose process this is.

    Not whom the environment names: that anybody can set.
    """
    return Act(_command.get(), account=_account())


def _account() -> str:
    """An account without a name, as in a container, is its number."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
