"""The passwords and the port of one embedded server, in a file only its owner can read."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, Self

from app.dev.errors import DevelopmentError

Role = Literal["owner", "service", "dispatch", "maintenance"]

LOGIN: dict[Role, str] = {
    "owner": "postgres",
    "service": "stoa_service",
    "dispatch": "stoa_dispatch",
    "maintenance": "stoa_maintenance",
}


@dataclass(frozen=True)
class Credentials:
    """One random password per role, and the port the server had last."""

    owner: str
    service: str
    dispatch: str
    maintenance: str
    port: int | None = None

    @classmethod
    def random(cls) -> Self:
        """Make up new ones."""
        passwords = {role: secrets.token_urlsafe(24) for role in LOGIN}
        return cls(
            owner=passwords["owner"],
            service=passwords["service"],
            dispatch=passwords["dispatch"],
            maintenance=passwords["maintenance"],
        )

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """Read them; ``None`` where there are none yet.

        Raises:
            DevelopmentError: the file is there but cannot be used.
        """
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise DevelopmentError(
                f"{path} cannot be read ({error}). `make run ARGS=--reset` (`stoa dev --reset`)"
                " starts afresh and deletes the data in this folder."
            ) from error

    def at_port(self, port: int) -> Self:
        """Return the same with another port."""
        return replace(self, port=port)

    def save(self, path: Path) -> None:
        """Write them whole or not at all, readable by the owner only from the first byte."""
        partial = path.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
        partial.replace(path)

    def dsn(self, role: Role, database: str) -> str:
        """Return the address of a database for one role."""
        password: str = getattr(self, role)
        return f"postgresql://{LOGIN[role]}:{password}@127.0.0.1:{self.port}/{database}"
