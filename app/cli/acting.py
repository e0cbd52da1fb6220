"""Who runs a command, and which: what goes on record with what it does."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

import click

from tenancy.acts import Act

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROGRAM = "stoa"


def command_act() -> Act:
    """The command that is being run, under the account whose process this is.

    Not whom the environment names: that anybody can set.
    """
    return Act(" ".join((_PROGRAM, *reversed(list(_names())))), account=_account())


def _names() -> Iterator[str]:
    """Of the command and of its groups, without the program's."""
    context = click.get_current_context()
    while context.parent is not None:
        yield str(context.info_name)
        context = context.parent


def _account() -> str:
    """An account without a name, as in a container, is its number."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
