"""The small model's weights: kept between test runs, for they are the same every time."""

from __future__ import annotations

import os
from pathlib import Path

from app.dev.model.weights import ensure_weights
from app.dev.supervisor.folder import open_folder

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "stoa" / "model"


async def give_weights(data: Path) -> None:
    """Put the weights into a new data folder, as an earlier start would have left them."""
    with open_folder(data) as folder:
        weights = await ensure_weights(CACHE)
        (folder.path / "model").mkdir()
        (folder.path / "model" / weights.name).symlink_to(weights)
