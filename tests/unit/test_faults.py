"""The points at which a test build dies are those that the service has."""

from __future__ import annotations

import re
from pathlib import Path

from app.faults import POINTS

APP = Path(__file__).resolve().parents[2] / "app"


def test_each_point_is_reached_in_one_place() -> None:
    sources = "\n".join(file.read_text(encoding="utf-8") for file in APP.rglob("*.py"))
    assert sorted(re.findall(r'faults\.reach\("([^"]+)"\)', sources)) == sorted(POINTS)
