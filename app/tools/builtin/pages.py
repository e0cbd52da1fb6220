"""An answer's bytes as text that a model can read. Works with the processor: for a thread."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from email.message import Message

from bs4.dammit import EncodingDetector

from app.tools.builtin.markdown import TooComplex, convert
from app.tools.refusal import ToolRefusal

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = re.compile(
    r"text/.+|application/(?:json|xml|x-ndjson|yaml|x-yaml|toml|javascript|.+\+json|.+\+xml)"
)
# What the web is written in. Python has stranger codecs, some of them slow on purpose.
_CODECS = re.compile(
    r"utf-8|utf-16(?:-[lb]e)?|iso8859-\d+|cp\d+|koi8-[ru]|gb\w+|big5\w*|shift_jis\w*|euc_\w+"
    r"|iso2022_jp\w*|mac-\w+"
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = {code: None for code in (*range(32), 127) if chr(code) not in "\t\n"}
"""No database stores a zero, and no terminal should run the rest."""


@dataclass(frozen=True, slots=True)
class Page:
    """What was found at an address."""

    url: str
    kind: str
    title: str
    text: str


def kind_of(content_type: str) -> str:
    """The media type of an answer.

    Raises:
        ToolRefusal: it is none that is text; the message says which one.
    """
    kind = _header(content_type).get_content_type() if content_type.strip() else "text/html"
    if not _TEXT.fullmatch(kind) and kind not in _HTML:
        plain = re.sub(r"[^a-z0-9.+/-]", "", kind)[:80]
        raise ToolRefusal(f"The address leads to something of type {plain}, which is not text.")
    return kind


def read_page(body: bytes, content_type: str, url: str) -> Page:
    """Decode the answer, and make Markdown of HTML.

    Raises:
        ToolRefusal: it cannot be made text of.
    """
    kind = kind_of(content_type)
    is_html = kind in _HTML
    text = _decoded(body, content_type, is_html=is_html)
    if not is_html:
        return Page(url, kind, "", _clean(text))
    try:
        title, text = convert(text, url)
    except TooComplex:
        raise ToolRefusal("The page is too complex to be read.") from None
    return Page(url, kind, _clean(title), _clean(text))


def _decoded(body: bytes, content_type: str, *, is_html: bool) -> str:
    """By the mark at its beginning, the header, or the page itself, in this order; else UTF-8."""
    for mark, marked in _MARKS:
        if body.startswith(mark):
            return body.decode(marked, "replace")
    declared = EncodingDetector.find_declared_encoding(body, is_html=True) if is_html else None
    for name in (_header(content_type).get_content_charset(), declared):
        codec = _codec(name)
        if codec is not None:
            return body.decode(codec, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def _codec(name: str | None) -> str | None:
    """The codec that browsers take for this name; Latin-1 is Windows' there."""
    try:
        known = codecs.lookup(name or "").name
    except (LookupError, ValueError):
        return None
    if known in {"ascii", "iso8859-1"}:
        return "cp1252"
    return known if _CODECS.fullmatch(known) else None


def _header(content_type: str) -> Message:
    message = Message()
    message["Content-Type"] = re.sub(r"[^\x20-\x7e]", "", content_type)[:200]
    return message


def _clean(text: str) -> str:
    return text.replace("\r\n", "\n").translate(_CONTROLS)
