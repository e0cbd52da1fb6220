"""What an archive holds, as its last member says it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.runs.wire import to_json
from tenancy.export.columns import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from app.export.archive import Written
    from app.export.folder import LeftOut
    from tenancy.principal import UserId

NAME = "manifest.json"
VERSION = 1


def manifest(
    user_id: UserId,
    made_at: datetime,
    members: Sequence[Written],
    left_out: Sequence[LeftOut],
    *,
    has_files: bool,
) -> bytes:
    """The manifest of an archive: each member with its size, rows and SHA-256, and what is not in.

    ``has_files``: whether the host that made it has a folder of the person's tool servers.
    """
    return to_json(
        {
            "version": VERSION,
            "user_id": str(user_id),
            "made_at": made_at,
            "members": [_member(each) for each in members],
            "withheld": {table: dict(columns) for table, columns in WITHHELD.items()},
            "files_on_this_host": has_files,
            "left_out": [{"path": each.path, "why": each.why} for each in left_out],
        }
    )


def _member(written: Written) -> dict[str, Any]:
    rows = {} if written.rows is None else {"rows": written.rows}
    facts = {"bytes": written.bytes, "sha256": written.sha256, **rows}
    return {"name": written.name, **facts, **written.about}
