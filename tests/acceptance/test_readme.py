"""What the README tells people to run is run, as it stands there."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.development import development
from tests.support.environment import REPOSITORY
from tests.support.model_server import ScriptedModelServer

README = REPOSITORY / "README.md"
ADDRESS = "http://localhost:8000"
MARKED = re.compile(r"^<!-- tested -->\n```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = {"python": [sys.executable, "-"], "sh": ["sh", "-eu"]}


@dataclass(frozen=True)
class Snippet:
    """One block of the README that is marked as tested."""

    language: str
    text: str

    def at(self, address: str) -> str:
        """The snippet for a service that is elsewhere."""
        return self.text.replace(ADDRESS, address)


def snippets() -> list[Snippet]:
    """All marked blocks, in the order in which somebody meets them."""
    return [Snippet(*found) for found in MARKED.findall(README.read_text(encoding="utf-8"))]


def only(language: str) -> Snippet:
    """The one marked block in a language."""
    found = [snippet for snippet in snippets() if snippet.language == language]
    assert len(found) == 1, f"README.md has {len(found)} blocks of {language} marked as tested"
    return found[0]


@pytest.fixture(scope="module")
async def address(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """A running ``stoa dev``, on whatever port is free."""
    data = tmp_path_factory.mktemp("readme") / "data"
    async with ScriptedModelServer(slots=2) as model, development(data, model.url) as url:
        yield url


async def run(snippet: Snippet, address: str, folder: Path) -> str:
    """Run a snippet in an empty folder, where the commands of this checkout's Python are found."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = await asyncio.create_subprocess_exec(
        *COMMANDS[snippet.language],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PATH": path},
        cwd=folder,
    )
    output, errors = await process.communicate(snippet.at(address).encode())
    assert process.returncode == 0, errors.decode()
    return output.decode()


class TestTheReadmesSnippets:
    def test_name_the_address_that_stoa_dev_has(self) -> None:
        assert len(snippets()) >= 2
        assert all(ADDRESS in snippet.text for snippet in snippets())

    async def test_the_curl_lines_stream_an_answer(self, address: str, tmp_path: Path) -> None:
        output = await run(only("sh"), address, tmp_path)
        assert output.startswith("event: metadata\n")
        assert "You said: What is the capital of France?" in output
        assert output.rstrip().splitlines()[-2] == "event: end"

    async def test_the_python_program_prints_an_answer_and_what_is_kept(
        self, address: str, tmp_path: Path
    ) -> None:
        output = await run(only("python"), address, tmp_path)
        assert output.splitlines() == ["You said: Name the largest ocean.", "2 messages are kept"]
