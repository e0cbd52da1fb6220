"""A process with a tool server in mid-call: says which processes it started, and waits to die.

python -m tests.support.tool_servers.worker FOLDER SANDBOX
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from tests.support.tool_servers.pools import (
    NO_CREDENTIAL,
    Footprint,
    called,
    quick,
    running_pool,
    said,
    somebody,
    until,
)


async def main() -> None:
    folder, sandbox = Path(sys.argv[1]), sys.argv[2]
    async with (
        running_pool(folder, sandbox) as pool,  # type: ignore[arg-type]
        pool.lease(somebody(), quick("deaf", "forks"), NO_CREDENTIAL) as connection,
    ):
        own = Path(json.loads(await said(connection, "whoami"))["folder"])
        call = asyncio.create_task(called(connection, "sleep", 3600))
        await until((own / "asleep").exists)
        print(json.dumps(list(Footprint().processes)), flush=True)  # noqa: T201 - it is asked
        await call


asyncio.run(main())
