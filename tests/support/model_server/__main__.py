"""``python -m tests.support.model_server``: the scripted model server as a process."""

from __future__ import annotations

import argparse
import asyncio

import uvicorn

from tests.support.model_server.application import ModelApplication, Plan
from tests.support.model_server.script import Script
from tests.support.model_server.server import config_of, listen


async def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.model_server")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--models", default="smollm2", help="comma-separated names")
    parser.add_argument("--script", default="{}", help="the default script, as JSON")
    options = parser.parse_args()
    plan = Plan(
        tuple(options.models.split(",")), default=Script.model_validate_json(options.script)
    )
    server = uvicorn.Server(config_of(ModelApplication(plan, options.slots)))
    listener = listen(options.port)
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)  # noqa: T201
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(main())
