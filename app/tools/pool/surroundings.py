"""What connections are made in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.tools.stdio.groups import Groups
from app.tools.stdio.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.tools.pool.http import OwnClients


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The machine's part in a connection."""

    folders: Path
    sandbox: Sandbox
    groups: Groups
    own_clients: OwnClients | None = None
    """Makes HTTP clients for servers that users added; without it, those are refused."""
    hear_errors: Callable[[bytes], None] | None = None
    """Hears what children write to their standard error; without it, that is dropped."""
