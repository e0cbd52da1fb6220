"""What is executed for a child: program, arguments, environment, limits."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from app.tools.servers import USER_FOLDER, Credential, StdioTransport

if TYPE_CHECKING:
    from collections.abc import Mapping

_PATH = "/usr/local/bin:/usr/bin:/bin"
_FOLDER = re.compile(r"(?<!\$)" + re.escape(USER_FOLDER))
"""``${user_folder}`` is a variable of a shell's, and no variable is expanded."""

GIB = 1024**3
LIMITS = {
    "AS": 64 * GIB,  # What is reserved is far more than what is used: Node reserves 10 GiB.
    "DATA": 2 * GIB,
    "FSIZE": GIB,
    "NOFILE": 1024,
    "CORE": 0,
}
"""Most bytes of address space, of memory, of one file; most open files; no core dumps. Processes
are not counted here: the kernel counts all that a user has, the worker's threads among them."""


class ProgramMissing(Exception):
    """There is no such program for this process."""


@dataclass(frozen=True, slots=True)
class Command:
    """One child, as it is executed. Its ``argv`` is readable by everybody on the machine."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    folder: Path
    readable: tuple[str, ...] = ()


def command_of(transport: StdioTransport, credential: Credential, folder: Path) -> Command:
    """What a server's configuration comes to for a user who has this folder and credential.

    Raises:
        ProgramMissing: the program is not there.
    """
    program = find_program(transport.command)
    if program is None:
        raise ProgramMissing

    def placed(text: str) -> str:
        return _FOLDER.sub(lambda _: str(folder), text)

    env = {
        "PATH": f"{program.parent}:{_PATH}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        **{name: placed(value) for name, value in transport.env.items()},
        **credential.env,
    }
    argv = (str(program), *(placed(argument) for argument in transport.args))
    return Command(argv, env, folder, transport.readable)


def find_program(command: str) -> Path | None:
    """By its path, or where programs are: beside Python's own, then where the worker looks."""
    beside = str(Path(sys.executable).parent)
    path = os.pathsep.join((beside, os.environ.get("PATH", _PATH)))
    found = shutil.which(command, path=path)
    return None if found is None else Path(found).absolute()
