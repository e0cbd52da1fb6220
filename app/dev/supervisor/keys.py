"""Development's own keys, each kind in a file that only its owner reads."""

from __future__ import annotations

import base64
import os
import secrets
from typing import TYPE_CHECKING

from app.dev.errors import DevelopmentError

if TYPE_CHECKING:
    from pathlib import Path

VAULT_KEYS = "vault-keys"
SIGNING_KEYS = "signing-keys"
_KEY_BYTES = 32
_OWNER_ONLY = 0o600


def ensure_keys(folder: Path, name: str) -> Path:
    """The file with keys of a kind, made at the first start, whole or not at all.

    Raises:
        DevelopmentError: it cannot be written.
    """
    path = folder / name
    if path.exists():
        return path
    partial = folder / f"{name}.partial"
    try:
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            key = base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode("ascii")
            file.write(f"development:{key}\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise DevelopmentError(f"{path} cannot be written: {error.strerror}.") from error
    return path
