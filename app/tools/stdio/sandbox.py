"""Bubblewrap: a child sees the system's programs, what it may read, and its own folder."""

from __future__ import annotations

import asyncio
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import structlog

from app.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.tools.stdio.command import Command

log = structlog.get_logger(__name__)

TRIAL_SECONDS = 10.0

_WITHOUT_PWD = ("/usr/bin/env", "-u", "PWD")
"""Bubblewrap sets that, and the environment is to be what was asked for."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_FILES = (
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "fonts",
    "group",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "passwd",
    "pki",
    "resolv.conf",
    "services",
    "ssl",
)
"""Of ``/etc``, what programs need to look up names and certificates; no configuration."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How children are kept apart; without a program, they are not."""

    program: str | None = None

    def wrap(self, command: Command) -> tuple[str, ...]:
        """What to execute so that the command runs within."""
        if self.program is None:
            return command.argv
        return (self.program, *_arguments(command), "--", *_WITHOUT_PWD, *command.argv)


async def choose_sandbox(wanted: Literal["auto", "bubblewrap", "none"]) -> Sandbox:
    """Bubblewrap where it is wanted and works.

    Raises:
        SettingsError: it is insisted on, and does not work.
    """
    if wanted == "none":
        return Sandbox()
    program = shutil.which("bwrap")
    if program is not None and await _works(program):
        return Sandbox(program)
    if wanted == "bubblewrap":
        raise SettingsError(
            "STOA_MCP_SANDBOX is bubblewrap, and bwrap does not work here: install it and allow"
            " user namespaces, or say `none` if every tool server is trusted with what the"
            " worker may read"
        )
    log.warning("tool servers are not sandboxed", reason="bubblewrap does not work here")
    return Sandbox()


async def _works(program: str) -> bool:
    try:
        trial = await asyncio.create_subprocess_exec(
            program,
            *_base(),
            "--",
            "/bin/true",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(TRIAL_SECONDS):
            return await trial.wait() == 0
    except TimeoutError:
        trial.kill()
        await trial.wait()
        return False


def _base() -> Iterator[str]:
    yield from ("--die-with-parent", "--unshare-user-try", "--unshare-pid", "--unshare-ipc")
    yield from (
        "--cap-drop",
        "ALL",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    )
    yield from ("--tmpfs", "/tmp")  # noqa: S108 - the sandbox's own
    for place in _SYSTEM:
        yield from ("--ro-bind-try", place, place)
    for name in _FILES:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _arguments(command: Command) -> Iterator[str]:
    yield from _base()
    readable = (sys.prefix, sys.base_prefix, *command.readable)
    for place in dict.fromkeys((*readable, *_program(command.argv[0], readable))):
        yield from ("--ro-bind-try", place, place)
    folder = str(command.folder)
    # Wherever the folders are: nobody else's is below what may be read.
    yield from ("--tmpfs", str(command.folder.parent.parent))
    yield from ("--bind", folder, folder, "--chdir", folder)


def _program(program: str, readable: tuple[str, ...]) -> Iterator[str]:
    """The program's own file, where it is not below what can be read anyway.

    Not its folder: who knows what else is there.
    """
    for path in (Path(program), Path(program).resolve()):
        if not any(path.is_relative_to(place) for place in (*_SYSTEM, *readable)):
            yield str(path)
