"""Markdown around what others wrote, which cannot get out of its place. Pure."""

from __future__ import annotations

import re

from app.export.inert import inert

_CONTROLS = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
}
"""Their pictures: as themselves they would move a terminal's cursor."""
_SURROGATES = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile("\r\n?|[\u2028\u2029]")
_BACKTICKS = re.compile("`+")
_MEANT = re.compile(r"([\\`*_{}\[\]<>()#+!|~&-])")
_DATA_IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")


def plain(text: str) -> str:
    """Text with one kind of line end, and nothing in it that is no character."""
    return _SURROGATES.sub("\ufffd", _LINE_END.sub("\n", text).translate(_CONTROLS))


def quoted(text: str) -> str:
    """A quotation. Whatever is opened in it, a block of code for instance, ends with it.

    Nothing is fetched by whoever shows it.
    """
    return "".join(f"> {line}".rstrip(" ") + "\n" for line in inert(plain(text).split("\n")))


def fenced(text: str, language: str = "text") -> str:
    """A block of code. Its fence is longer than any in the text."""
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}{language}\n{plain(text)}\n{fence}\n"


def code(text: str) -> str:
    """A few words as code, on one line."""
    shown = " ".join(plain(text).split()) or "?"
    ticks = "`" * (_longest(shown) + 1)
    edge = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{ticks}{edge}{shown}{edge}{ticks}"


def words(text: str) -> str:
    """A few words as they are, on one line: nothing in them has a meaning."""
    return _MEANT.sub(r"\\\1", " ".join(plain(text).split()))


def image(url: str) -> str:
    """An image that stands in its own address; of any other the address, which nobody follows."""
    if _DATA_IMAGE.fullmatch(url):
        return f"![Image]({url})\n"
    return f"[Image: {code(url[:_SHOWN])}]\n"


_SHOWN = 500


def _longest(text: str) -> int:
    return max(map(len, _BACKTICKS.findall(text)), default=0)
