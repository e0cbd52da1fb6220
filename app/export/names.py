"""Names of files that every system takes, whatever people and programs call things. Pure."""

from __future__ import annotations

import re
import unicodedata

MOST_BYTES = 100
"""Of one part of a path: file systems take 255, and something may stand before and after it."""

UNTITLED = "untitled"
_REFUSED = re.compile(r'[<>:"/\\|?*]+')
_DEVICES = re.compile(
    r"(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[0-9\u00b9\u00b2\u00b3])(\..*)?", re.IGNORECASE
)
"""What Windows takes for a device, whatever follows the first dot."""
_INVISIBLE = ("C", "Z")
"""Categories of characters: controls, marks of direction, surrogates, unassigned; white space."""


def safe_name(said: str, *, otherwise: str = UNTITLED) -> str:
    """A name like what is said: one part of a path, on no system anything else.

    ``otherwise`` is the name of what has no character that could be in one.
    """
    shown = "".join(
        " " if unicodedata.category(each).startswith(_INVISIBLE) else each
        for each in unicodedata.normalize("NFC", said)
    )
    name = _cut(" ".join(_REFUSED.sub(" ", shown).split()), MOST_BYTES).strip(" .")
    return f"_{name}" if _DEVICES.fullmatch(name) else name or otherwise


def _cut(name: str, most: int) -> str:
    """As much of a name as fits, with its ending where it has a short one."""
    if len(name.encode()) <= most:
        return name
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem or len(ending.encode()) > most // 4:
        stem, dot, ending = name, "", ""
    room = most - len((dot + ending).encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip(" .") + dot + ending


class Names:
    """The names in one folder, each used once, also where capital letters make no difference."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[tuple[str, str], int] = {}
        """The last number by stem and ending: so many that are alike are not counted through."""

    def new(self, said: str) -> str:
        """A safe name like what is said that nothing else in the folder has."""
        name = safe_name(said)
        stem, dot, ending = name.rpartition(".")
        if not stem:
            stem, dot, ending = name, "", ""
        alike = (_folded(stem), _folded(ending))
        free, number = name, self._numbers.get(alike, 1)
        while _folded(free) in self._taken:
            number += 1
            free = f"{stem} ({number}){dot}{ending}"
        self._numbers[alike] = number
        self._taken.add(_folded(free))
        return free


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name.casefold())
