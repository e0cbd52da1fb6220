"""The gateway's signing key, kept in a file that only its owner reads."""

from __future__ import annotations

import json
import os
import secrets
from typing import TYPE_CHECKING

from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from app.dev.errors import DevelopmentError

if TYPE_CHECKING:
    from pathlib import Path

_OWNER_ONLY = 0o600


def load_or_create_key(path: Path) -> ECKey:
    """Return the ES256 key in this file; make one at the first start.

    Raises:
        DevelopmentError: the file cannot be read or written, or holds something else.
    """
    try:
        if not path.exists():
            _create(path)
        path.chmod(_OWNER_ONLY)
        return _parse(path)
    except OSError as error:
        raise DevelopmentError(
            f"The gateway's key file {path} cannot be used: {error.strerror}."
        ) from error


def _create(path: Path) -> None:
    """Write a new key whole or not at all; of two that start at once, one wins for both."""
    path.parent.mkdir(parents=True, exist_ok=True)
    key = ECKey.generate_key("P-256", {"use": "sig", "alg": "ES256"}, auto_kid=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(key.as_dict(private=True), file)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink()


def _parse(path: Path) -> ECKey:
    try:
        key = ECKey.import_key(json.loads(path.read_text(encoding="utf-8")))
        if key.is_private and key.curve_name == "P-256" and key.kid:
            return key
    except (JoseError, ValueError, TypeError, KeyError):
        pass  # As unusable as a key of another kind.
    raise DevelopmentError(
        f"{path} holds no signing key. Delete it; the next start makes a new one,"
        " and everybody signs in again."
    )
