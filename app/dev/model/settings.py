"""What the local model is started with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LocalModelSettings:
    """One small model behind one address."""

    cache: Path
    """Folder that keeps the weights between starts."""
    host: str = "127.0.0.1"
    port: int = 11434
    model: str = "smollm2"
    slots: int = 2
    """Answers in the making at once; further requests wait their turn."""
    context: int = 4096
    """Tokens of one conversation, prompt and answer together."""
