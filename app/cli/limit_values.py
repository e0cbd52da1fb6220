"""Limits as they are given on the command line: ``name=value``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.admin.limits_views import LimitValues

UNLIMITED = "none"
INHERITED = "default"
HELP = (
    "name=value: a number, `none` for no limit, `default` for what the plan or the settings say."
    " `stoa admin plans list` shows the names."
)


def changed(limits: LimitValues, said: Iterable[str]) -> LimitValues:
    """The limits with what was said; what is not named stays.

    Raises:
        typer.BadParameter: something is not of that form.
    """
    result = dict(limits)
    for each in said:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"Say name=value, not {each!r}.")
        if value == INHERITED:
            result.pop(name, None)
        else:
            result[name] = None if value == UNLIMITED else _number(name, value)
    return result


def _number(name: str, value: str) -> int | float:
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        raise typer.BadParameter(
            f"`{name}` is a number, `{UNLIMITED}` or `{INHERITED}`, not {value!r}."
        ) from None
