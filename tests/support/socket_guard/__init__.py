"""What processes connect to, look up and start, as the C library is asked for it.

See ``guard.c``. Whoever is started with :attr:`Guard.environment` is watched, and so is all that is
forked from it; programs that it starts in an environment without these variables are noted as such.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path(__file__).with_name("guard.c")


@dataclass(frozen=True)
class Guard:
    """A library to load, and the file of its notes."""

    library: Path
    notes: Path

    @classmethod
    def compiled(cls, folder: Path) -> Guard:
        """Build it there."""
        compiler = shutil.which("cc")
        assert compiler is not None, "the guard of sockets needs a C compiler (cc)"
        library = folder / "guard.so"
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE), "-ldl"],
            check=True,
        )
        return cls(library, folder / "notes")

    @property
    def environment(self) -> dict[str, str]:
        """For a process to be watched."""
        return {"LD_PRELOAD": str(self.library), "STOA_TEST_NOTES": str(self.notes)}

    def noted(self, what: str) -> set[str]:
        """Where a process connected to, or sent a packet, which ``name``, or ``program``."""
        lines = self.notes.read_text(encoding="utf-8").splitlines() if self.notes.exists() else []
        pairs = (line.split(" ", 1) for line in lines)
        return {where for kind, where in pairs if kind == what}
