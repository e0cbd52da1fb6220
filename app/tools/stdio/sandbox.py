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
_SCRATCH_BYTES = str(256 * 1024**2)
"""What a child may keep in each place that is memory."""
_READ_ONLY = ("--remount-ro", "/dev", "--remount-ro", "/")
"""What bubblewrap makes of memory to hang the rest into: nothing more is kept in it."""
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
    is_sized: bool = True
    """Whether this bubblewrap bounds what is kept in memory; it does since 0.7."""

    def wrap(self, command: Command) -> tuple[str, ...]:
        """What to execute so that the command runs within."""
        if self.program is None:
            return command.argv
        arguments = _arguments(command, is_sized=self.is_sized)
        return (self.program, *arguments, "--", *_WITHOUT_PWD, *command.argv)


async def choose_sandbox(wanted: Literal["auto", "bubblewrap", "none"]) -> Sandbox:
    """Bubblewrap where it is wanted and works.

    Raises:
        SettingsError: it is insisted on, and does not work.
    """
    if wanted == "none":
        return Sandbox()
    program = shutil.which("bwrap")
    for is_sized in (True, False):
        if program is not None and await _works(program, is_sized=is_sized):
            return Sandbox(program, is_sized)
    if wanted == "bubblewrap":
        raise SettingsError(
            "STOA_MCP_SANDBOX is bubblewrap, and bwrap does not work here: install it and allow"
            " user namespaces, or say `none` if every tool server is trusted with what the"
            " worker may read"
        )
    log.warning("tool servers are not sandboxed", reason="bubblewrap does not work here")
    return Sandbox()


async def _works(program: str, *, is_sized: bool) -> bool:
    try:
        trial = await asyncio.create_subprocess_exec(
            program,
            *_base(is_sized=is_sized),
            *_READ_ONLY,
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


def _base(*, is_sized: bool) -> Iterator[str]:
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
    for place in ("/tmp", "/dev/shm"):  # noqa: S108 - the sandbox's own
        yield from ("--size", _SCRATCH_BYTES) if is_sized else ()
        yield from ("--tmpfs", place)
    for place in _SYSTEM:
        yield from ("--ro-bind-try", place, place)
    for name in _FILES:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _arguments(command: Command, *, is_sized: bool) -> Iterator[str]:
    yield from _base(is_sized=is_sized)
    readable = (sys.prefix, sys.base_prefix, *command.readable)
    for place in dict.fromkeys((*readable, *_program(command.argv[0], readable))):
        yield from ("--ro-bind-try", place, place)
    folder = str(command.folder)
    # Wherever the folders are: nobody else's is below what may be read.
    others = str(command.folder.parent.parent)
    yield from ("--tmpfs", others, "--bind", folder, folder, "--chdir", folder)
    yield from (*_READ_ONLY, "--remount-ro", others)


def _program(program: str, readable: tuple[str, ...]) -> Iterator[str]:
    """The program's own file, where it is not below what can be read anyway.

    Not its folder: who knows what else is there.
    """
    for path in (Path(program), Path(program).resolve()):
        if not any(path.is_relative_to(place) for place in (*_SYSTEM, *readable)):
            yield str(path)
