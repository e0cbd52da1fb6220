"""``stoa admin tools`` says of each server whether it works here, before anybody wants it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from app.admin.tool_servers import ToolServerView, try_servers
from app.settings import Settings, SettingsError
from tests.integration.admin.commands import run_command
from tests.support.tool_servers.pools import QUICK


def quick(*behaviour: str, **stoa: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-I", "-S", str(QUICK), *behaviour], "stoa": stoa}


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    servers = {
        "notes": quick(
            tools={"deny": ["die", "remove"]},
            trust={"read_only": ["whoami", "lok"]},
            approval={"whoami": "never", "die": "always", "writ": [{"ask": "always"}]},
        ),
        "broken": {"command": sys.executable, "args": ["-c", "raise SystemExit('no settings')"]},
        "mail": {"url": "http://127.0.0.1:9/mcp", "stoa": {"credential": {"kind": "header"}}},
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return file


async def tried(catalogue: Path, *names: str) -> dict[str, ToolServerView]:
    settings = Settings.model_validate({"mcp_config": [catalogue], "mcp_sandbox": "none"})
    return {each.server: each for each in await try_servers(settings, names)}


class TestToolServers:
    async def test_are_started_listed_and_ended(self, catalogue: Path) -> None:
        notes = (await tried(catalogue, "notes"))["notes"]
        assert notes.state == "available"
        assert "whoami" in notes.tools
        assert "die" not in notes.tools

    async def test_are_told_of_names_that_mean_nothing(self, catalogue: Path) -> None:
        assert (await tried(catalogue, "notes"))["notes"].unknown == [
            *("lok", "remove", "writ"),
        ]

    async def test_are_shown_with_when_people_are_asked(self, catalogue: Path) -> None:
        settings = Settings.model_validate(
            {
                "mcp_config": [catalogue],
                "mcp_sandbox": "none",
                "approval_default": "first_use",
            }
        )
        found = {each.server: each for each in await try_servers(settings, [])}
        notes, mail = found["notes"], found["mail"]
        asked = {"*": "first_use", "whoami": "never", "writ": "always"}
        assert asked.items() <= notes.approval.items()
        assert set(notes.approval) == {*notes.tools, "*", "writ"}
        assert mail.approval == {"*": "first_use"}

    async def test_that_fail_are_shown_with_what_they_wrote(self, catalogue: Path) -> None:
        broken = (await tried(catalogue, "broken"))["broken"]
        assert (broken.state, broken.errors) == ("exited", "no settings")

    async def test_that_want_a_persons_key_are_only_read(self, catalogue: Path) -> None:
        assert (await tried(catalogue, "mail"))["mail"].state == "needs_key"

    async def test_that_are_not_there_are_wrong_use(self, catalogue: Path) -> None:
        with pytest.raises(SettingsError, match="names no server `other`"):
            await tried(catalogue, "other")


class TestTheCommand:
    async def test_fails_where_one_does_and_shows_why(
        self, catalogue: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("STOA_MCP_CONFIG", str(catalogue))
        monkeypatch.setenv("STOA_MCP_SANDBOX", "none")
        status, output = await run_command(monkeypatch, "tools", "broken", "mail")
        assert status == 1
        assert all(word in output for word in ("broken", "exited", "no settings", "needs_key"))
        status, output = await run_command(monkeypatch, "tools", "--json", "notes")
        assert (status, json.loads(output)[0]["state"]) == (0, "available")
        status, output = await run_command(monkeypatch, "tools", "notes")
        assert "never, writ: always" in output
