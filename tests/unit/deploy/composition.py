"""What ``deploy/compose.yaml`` says, with its variables filled in as Compose does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeAlias

import yaml

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"

Service: TypeAlias = dict[str, Any]

_VARIABLE = re.compile(r"\$\{(?P<name>\w+):-(?P<default>[^}]*)\}")


def variables() -> dict[str, str]:
    """Every variable that the file has filled in, with its default."""
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    return {found["name"]: found["default"] for found in _VARIABLE.finditer(text)}


def composition(**values: str) -> dict[str, Any]:
    """The whole file. A variable that isn't among the values has its default."""
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    filled = _VARIABLE.sub(lambda found: values.get(found["name"], found["default"]), text)
    loaded: dict[str, Any] = yaml.safe_load(filled)
    return loaded


def services(**values: str) -> dict[str, Service]:
    """The services by name."""
    found: dict[str, Service] = composition(**values)["services"]
    return found


def stoa_services() -> dict[str, Service]:
    """Those that run Stoa's own image."""
    return {name: service for name, service in services().items() if service.get("image") == "stoa"}
