"""What a process of this checkout is started with."""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def inherited_environment() -> dict[str, str]:
    """This process's environment without settings of Stoa's, for a process of this checkout."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("STOA_")}
    return {**own, "PYTHONPATH": str(REPOSITORY)}
