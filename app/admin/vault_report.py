"""What ``stoa admin vault`` shows a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from app.admin.tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from app.admin.vault import VaultKeyView, VaultRotation

_COLUMNS = ("key", "in the settings", "wraps", "users", "data keys", "")


def keys_report(keys: Sequence[VaultKeyView]) -> RenderableType:
    """The keys, and which may go."""
    if not keys:
        return Text("There are no keys, and nothing is kept under any. See STOA_VAULT_KEYS.")
    return table(
        _COLUMNS,
        (
            (
                key.key_id,
                "yes" if key.configured else "no",
                "yes" if key.wraps else "no",
                key.users,
                key.data_keys,
                _advice(key),
            )
            for key in keys
        ),
    )


def rotation_report(done: VaultRotation) -> RenderableType:
    """What a rotation did, and what it could not do."""
    lines = []
    lines.append(
        f"Looked at {done.users} users: {done.rewrapped} data keys put under the first key,"
        f" {done.new_data_keys} new data keys, {done.resealed} credentials sealed under them."
    )
    if done.left:
        lines.append(
            f"{done.left} older data keys are needed by authorizations under way:"
            " run this again in ten minutes."
        )
    lines += [f"Could not be done for {count}: {why}." for why, count in sorted(done.why.items())]
    return Group(*(Text(line) for line in lines))


def _advice(key: VaultKeyView) -> str:
    if key.data_keys and not key.configured:
        return "missing: what is under it cannot be read"
    if key.data_keys and not key.wraps:
        return "run `stoa admin vault rotate`"
    if not key.wraps:
        return "may go"
    return ""
