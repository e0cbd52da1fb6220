"""Who signs in here: anybody, under any name."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

LONGEST_NAME = 64
OPERATORS = "stoa-admins"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who gave a name. Two names are two people."""

    name: str
    operator: bool = False

    @property
    def email(self) -> str | None:
        """An address that can be shown and never reached; not every name makes one."""
        local = re.sub(r"[^a-z0-9]+", ".", self.name.lower()).strip(".")
        return f"{local}@dev.localhost" if local else None

    @property
    def groups(self) -> list[str]:
        """What the gateway says about the person's rights."""
        return [OPERATORS] if self.operator else []


class UnusableName(Exception):
    """What was given cannot be a name."""


def read_name(text: object) -> str:
    """Return a name as it is kept: trimmed and in one Unicode form.

    Raises:
        UnusableName: it is empty, too long, or has characters that are none.
    """
    if not isinstance(text, str) or len(text) > 4 * LONGEST_NAME:
        raise UnusableName
    name = " ".join(unicodedata.normalize("NFC", text).split())
    if not 0 < len(name) <= LONGEST_NAME:
        raise UnusableName
    if any(unicodedata.category(character) in {"Cc", "Cf", "Cs"} for character in name):
        raise UnusableName
    return name
