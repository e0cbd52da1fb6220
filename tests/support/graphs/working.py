"""An agent whose tools do what a test tells them: they wait on files of a folder.

``look_up`` only reads; ``append`` adds its line to the folder's ``lines``. Called with a ``name``,
each says that it has begun by a file ``<name>.begun`` and answers once there is ``<name>.go``.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from app.agent import service_model
from app.agent.agent import build_agent
from app.agent.graphs import SYSTEM_PROMPT
from app.tools.calls import AgentTool

FOLDER = "STOA_TEST_FOLDER"
"""The environment variable that names the folder."""

LINES = "lines"
CALL_SECONDS = 60.0
LOOK_SECONDS = 0.005


async def look_up(name: str) -> str:
    """Look something up."""
    await _wait(name)
    return f"{name} was found"


async def append(name: str) -> str:
    """Append a line, after having waited: half of it must never be done."""
    await _wait(name)
    with (_folder() / LINES).open("a", encoding="utf-8") as lines:
        lines.write(f"{name}\n")
    return f"{name} was appended"


async def fail(name: str) -> str:
    """Raise what nobody but the operator may read."""
    raise RuntimeError(f"secret of {name}")


async def _wait(name: str) -> None:
    folder = _folder()
    (folder / f"{name}.begun").touch()
    while not (folder / f"{name}.go").exists():  # noqa: ASYNC110 - a file has no event
        await asyncio.sleep(LOOK_SECONDS)


def _folder() -> Path:
    return Path(os.environ[FOLDER])


TOOLS = [
    AgentTool.from_function(look_up, read_only=True, timeout_seconds=CALL_SECONDS),
    AgentTool.from_function(append, read_only=False, timeout_seconds=CALL_SECONDS),
    AgentTool.from_function(fail, read_only=True, timeout_seconds=CALL_SECONDS),
]


def graph() -> object:
    """Build the agent with the service's model."""
    model = service_model()
    room = (model.num_ctx or 0) - (model.num_predict or 0)
    return build_agent(model, SYSTEM_PROMPT, room, TOOLS)
