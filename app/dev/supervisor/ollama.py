"""Which model server the development service uses."""

from __future__ import annotations

import json

from app.dev.supervisor.health import fetch

LOCAL_MODEL = "smollm2"


async def ollama_answers(url: str) -> bool:
    """Say whether an Ollama answers here, as far as this machine can tell."""
    if not url.startswith("http://"):
        return True  # An https server was set on purpose; the worker will say what is wrong.
    answer = await fetch(f"{url.rstrip('/')}/api/version", seconds=1.0)
    return answer is not None and answer[0] == 200  # noqa: PLR2004


async def has_model(url: str, model: str) -> bool:
    """Say whether an Ollama that answers lists this model."""
    answer = await fetch(f"{url.rstrip('/')}/api/tags")
    if answer is None:
        return True
    try:
        listed = json.loads(answer[1])["models"]
        names = {entry["name"] for entry in listed}
    except (ValueError, KeyError, TypeError):
        return True  # Not what we thought; nothing to warn about.
    return model in names or f"{model}:latest" in names
