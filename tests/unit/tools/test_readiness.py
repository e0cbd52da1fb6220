"""What an operator is told at the start, and not by the first person who wants a tool."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from app.settings import SettingsError
from app.tools.servers import HttpTransport, McpServer, StdioTransport
from app.tools.stdio.readiness import get_ready

CHILD = McpServer("notes", StdioTransport("python3"))
REMOTE = McpServer("mail", HttpTransport("https://tools.example/mcp"))


class TestAProgramThatIsMissing:
    def test_is_named_and_holds_up_nobody(self, tmp_path: Path) -> None:
        with capture_logs() as lines:
            get_ready([CHILD, McpServer("gone", StdioTransport("no-such-program"))], tmp_path)
        assert [(line["server"], line["program"]) for line in lines] == [
            ("gone", "no-such-program")
        ]


class TestTheFolder:
    def test_is_made_for_children_only(self, tmp_path: Path) -> None:
        folder = tmp_path / "a" / "mcp"
        get_ready([REMOTE], folder)
        assert not folder.exists()
        get_ready([REMOTE, CHILD], folder)
        assert folder.stat().st_mode & 0o777 == 0o700

    def test_that_cannot_be_made_stops_the_start(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(SettingsError, match=r"STOA_MCP_FOLDER: .* cannot be used"):
            get_ready([CHILD], tmp_path / "file" / "mcp")
