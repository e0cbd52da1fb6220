"""The process groups of this worker's children, known to a process that outlives it."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from app.tools.stdio.records import ChildRecords

_WARDEN = Path(__file__).with_name("warden.py")


class Groups:
    """Where groups are made known, so that none is left when this process is killed.

    What is left all the same, the next start finds by its record.

    The warden is not needed within a sandbox: there the kernel ends all that a child started.
    """

    def __init__(
        self,
        warden: asyncio.subprocess.Process | None = None,
        records: ChildRecords | None = None,
    ) -> None:
        self._warden = warden
        self._records = records

    @classmethod
    async def guarded(cls, records: ChildRecords | None = None) -> Self:
        """With a warden of their own."""
        warden = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(_WARDEN),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            start_new_session=True,
        )
        return cls(warden, records)

    def begun(self, group: int) -> None:
        """There is such a group now."""
        if self._records is not None:
            self._records.begun(group)
        self._tell(f"+{group}\n")

    def over(self, group: int) -> None:
        """It has been ended, and its number may become somebody else's."""
        if self._records is not None:
            self._records.over(group)
        self._tell(f"-{group}\n")

    async def close(self) -> None:
        """End the warden, which ends what is still known to it."""
        if self._warden is None or self._warden.stdin is None:
            return
        self._warden.stdin.close()
        await self._warden.wait()

    def _tell(self, line: str) -> None:
        if self._warden is not None and self._warden.stdin is not None:
            # A warden that is gone is one safeguard less, and no reason to serve nobody.
            with suppress(OSError, RuntimeError):
                self._warden.stdin.write(line.encode())
