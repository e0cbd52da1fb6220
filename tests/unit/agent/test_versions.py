"""Which version of the built-in graph a process has."""

from __future__ import annotations

from pathlib import Path

from app.agent.versions import agent_version


class TestTheVersion:
    def test_is_another_one_with_another_model_or_prompt_and_else_the_same(
        self, tmp_path: Path
    ) -> None:
        prompt, other = tmp_path / "prompt.md", tmp_path / "other.md"
        prompt.write_text("Be brief.")
        other.write_text("Be kind.")
        version = agent_version("smollm2", prompt)
        assert agent_version("smollm2", prompt) == version
        others = {agent_version("llama", prompt), agent_version("smollm2", other)}
        assert version not in others
        assert len(others) == 2

    def test_is_there_without_a_prompt_as_well(self, tmp_path: Path) -> None:
        assert agent_version("smollm2", tmp_path / "missing.md")
