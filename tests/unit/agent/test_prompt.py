"""What the model is told before the conversation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from app.agent.equipment import Equipment
from app.agent.prompt import build_prompt
from app.tools.approval.ruling import Ask, Policy
from app.tools.calls import AgentTool
from tests.unit.agent.test_approving import Says


async def look(name: str) -> str:
    """Look."""
    return name


TOOL = AgentTool.from_function(look, read_only=True, timeout_seconds=1)


class TestTheFirstMessage:
    @pytest.mark.parametrize(
        ("policy", "is_told"), [(None, False), (Says(Ask.ALWAYS), True)], ids=["never", "maybe"]
    )
    async def test_says_that_people_are_asked_where_they_may_be(
        self, tmp_path: Path, policy: Policy | None, is_told: bool
    ) -> None:
        system = tmp_path / "system.md"
        system.write_text("Be brief.")
        run = Equipment({"look": replace(TOOL, policy=policy)})
        first, _ = await build_prompt([HumanMessage("hi")], system, 4000, run)
        assert first.text.startswith("Be brief.")
        assert ("approved" in first.text) is is_told
