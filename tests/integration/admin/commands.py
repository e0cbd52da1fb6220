"""Commands of ``stoa`` in this process: the real entry point, without the time a new one takes."""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, TextIO

import pytest

from app.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    from app.settings import Settings

_NEEDED = ("dispatch_database_url", "maintenance_database_url")
_is_command: ContextVar[bool] = ContextVar("is_command", default=False)


class Commands:
    """Runs commands as an operator does who has the addresses of two roles, and no more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, settings: Settings, folder: Path) -> None:
        self._monkeypatch = monkeypatch
        monkeypatch.chdir(folder)
        for name in _NEEDED:
            monkeypatch.setenv(f"STOA_{name.upper()}", settings.required(name))

    async def __call__(self, *arguments: str) -> tuple[int, str]:
        """Exit status and output of ``stoa admin``."""
        return await run_command(self._monkeypatch, *arguments)


class _Said(io.StringIO):
    """What a command says. A service in this process says what it says elsewhere, at any moment."""

    def __init__(self, elsewhere: TextIO) -> None:
        super().__init__()
        self._elsewhere = elsewhere

    def write(self, text: str) -> int:
        return super().write(text) if _is_command.get() else self._elsewhere.write(text)


async def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    """Exit status and output of ``stoa admin`` in the environment as it is."""
    monkeypatch.setattr(sys, "argv", ["stoa", "admin", *arguments])
    said = _Said(sys.stdout)
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = await asyncio.to_thread(_exit_status)
    return status, said.getvalue()


def _exit_status() -> int:
    _is_command.set(True)  # in a context of this thread's own
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0
