"""Which version of the built-in graph a process has: what it is made of, and what it is told."""

from __future__ import annotations

import hashlib
from pathlib import Path

_APP = Path(__file__).parents[1]
_SOURCES = ("agent", "tools")


def agent_version(model: str, system_prompt: Path) -> str:
    """Another one where the graph's code, its model or its system prompt is another.

    Reads some hundred small files: to be called once, as the process starts.
    """
    digest = hashlib.sha256(model.encode())
    for path in (*_files(), system_prompt):
        content = path.read_bytes() if path.exists() else b""
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:32]


def _files() -> list[Path]:
    """In the order of their places in the package, which is the same in every installation."""
    found = [path for name in _SOURCES for path in (_APP / name).rglob("*.py")]
    return sorted(found, key=lambda path: path.relative_to(_APP).as_posix())
