"""Markdown of which nothing is fetched when it is shown: no image, no HTML. Pure.

A model can be talked into an image whose address says what somebody else wants to know: it would be
sent there by whatever shows the file. Code stays as it is; what may be code for some program and
not for another is none here; then a backslash too many is shown, and nothing is fetched.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LONGEST = 10_000
"""Of a line that is looked at for code."""
_BLOCK = re.compile(r"(`{3,})[^`]*|(~{3,}).*")
"""A line that begins a block of code, whatever stands before it."""
_FENCE = re.compile("`{3,}|~{3,}")
_IMAGE = r"(?P<image>!\[)"
_HTML = r"(?P<html><(?=[A-Za-z/!?]))"
_FETCHED = re.compile(f"{_IMAGE}|{_HTML}")
_IN_TEXT = re.compile(
    r"\\."
    # In one line, and in one cell if it is a table.
    r"|(?P<code>(?<!`)(?P<ticks>`+)(?!`)[^|]{1,300}?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<unclosed>`+)"
    f"|{_IMAGE}|{_HTML}"
)


def inert(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a text, with nothing in them that would be fetched."""
    return map(_Reader().line, lines)


class _Reader:
    """Reads line by line, and knows what is code for as long as nobody can see it otherwise."""

    def __init__(self) -> None:
        self._fence = ""
        """What the block of code began with that this is in; empty outside of any."""
        self._is_sure = True

    def line(self, line: str) -> str:
        if self._fence:
            self._end_block(line)
            return line
        if self._is_sure and (begins := _BLOCK.fullmatch(line)):
            self._fence = begins[1] or begins[2]
            return line
        if len(line) > _LONGEST or _FENCE.search(line):  # within a list, perhaps, or not
            self._is_sure = False
        return (_IN_TEXT if self._is_sure else _FETCHED).sub(self._inert, line)

    def _end_block(self, line: str) -> None:
        said = line.strip()
        if said.startswith(self._fence) and not said.strip(self._fence[0]):
            self._is_sure = line.rstrip(" \t") == said  # else it may be its end, or not
            self._fence = ""

    def _inert(self, found: re.Match[str]) -> str:
        is_what = found.lastgroup
        if is_what == "unclosed":  # it may go on in the next line
            self._is_sure = False
        if found.groupdict().get("code") and not self._is_sure:
            return _FETCHED.sub(self._inert, found[0])
        # A backslash before either changes nothing.
        return {"image": r"!\[", "html": "&lt;"}.get(is_what or "", found[0])
