"""Starting a process must stay fast: nothing heavy is imported before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("xllamacpp", "langchain_ollama", "ollama")


@pytest.mark.parametrize(
    "module", ["app.models.health", "app.models.errors", "app.dev.model.serve"]
)
def test_importing_brings_no_model_library(module: str) -> None:
    code = f"import sys, {module}; print(*(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
