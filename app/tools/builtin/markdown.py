"""A web page as Markdown, whatever somebody put into it: in bounded time, depth and size.

What a person would not see is left out, so that nobody can speak past them to the model. Works
with the processor, so it belongs into a thread (``convert`` ends by itself).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag
from bs4.element import PageElement, PreformattedString
from markdownify import ATX, MarkdownConverter

SECONDS = 3.0
"""Of the processor, whatever else the machine does."""
MOST_TAGS = 40_000
"""Opening and closing. A tag is a few bytes in a page and a thousand in memory."""
DEEPEST = 120
"""Levels; the text of what is deeper is kept. The library goes down by recursion."""
LONGEST = 4 * 1024 * 1024
_LONGEST_URL = 2048

_UNSEEN = frozenset(
    """
    head script style noscript template iframe object embed applet svg math canvas audio video map
    datalist dialog input select option textarea
    """.split()  # noqa: SIM905 - one a line would be a page
)
_KNOWN = frozenset(
    """
    html body a abbr address article aside b bdi bdo blockquote br button caption center cite code
    col colgroup data dd del details dfn div dl dt em fieldset figcaption figure font footer form
    h1 h2 h3 h4 h5 h6 header hgroup hr i img ins kbd label legend li main mark nav ol p picture pre
    q rp rt ruby s samp section small span strong sub summary sup table tbody td tfoot th thead
    time tr u ul var wbr
    """.split()  # noqa: SIM905 - as above
)
_HIDING_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0(?:\.0*)?\s*(?:;|!|$)"
    r"|font-size\s*:\s*0[a-z%]*\s*(?:;|!|$)",
    re.IGNORECASE,
)
_KEPT_ATTRIBUTES = frozenset({"href", "src", "alt", "title"})
_MANY_EMPTY_LINES = re.compile(r"\n{3,}")
_WEB = re.compile(r"https?://", re.IGNORECASE)


class TooComplex(Exception):
    """The page takes more time, or becomes longer, than it is worth."""


def convert(html: str, url: str) -> tuple[str, str]:
    """Return the page's title and its body as Markdown, with whole links; or as mere text.

    Raises:
        TooComplex: it cannot be had within the bounds.
    """
    deadline = time.thread_time() + SECONDS
    # What begins with `<?` is a comment in HTML; the library would take it for XML and warn.
    soup = BeautifulSoup("<!doctype html>" + _cut(html).replace("<?", "<!"), "lxml")
    title = " ".join(soup.title.get_text().split())[:300] if soup.title else ""
    base = _base(soup, url)
    _prune(soup, deadline)
    for tag in _tags(soup, deadline):
        _plain_attributes(tag, base)
    try:
        text = _Converter(deadline).convert_soup(soup)
    except TooComplex:
        text = soup.get_text("\n")
    return title, _MANY_EMPTY_LINES.sub("\n\n", text).strip()


def _cut(html: str) -> str:
    """The page up to as many tags as are read."""
    parts = html.split("<", MOST_TAGS + 1)
    return html if len(parts) <= MOST_TAGS + 1 else "<".join(parts[:-1])


def _base(soup: BeautifulSoup, url: str) -> str:
    named = soup.find("base", href=True)
    return urljoin(url, str(named["href"])) if isinstance(named, Tag) else url


def _prune(soup: BeautifulSoup, deadline: float) -> None:
    """Take out what is not seen, and what is nested too deep; know every tag that stays."""
    waiting: list[tuple[PageElement, int]] = [(child, 1) for child in soup.children]
    while waiting:
        element, depth = waiting.pop()
        _in_time(deadline)
        if not isinstance(element, Tag):
            if isinstance(element, PreformattedString):  # comments, declarations
                element.extract()
        elif _is_unseen(element):
            element.extract()
        elif depth >= DEEPEST:
            element.replace_with(element.get_text(" "))
        else:
            if element.name not in _KNOWN:
                element.name = "span"
            waiting.extend((child, depth + 1) for child in element.children)


def _is_unseen(tag: Tag) -> bool:
    return (
        tag.name in _UNSEEN
        or tag.has_attr("hidden")
        or str(tag.get("aria-hidden", "")).lower() == "true"
        or _HIDING_STYLE.search(str(tag.get("style", ""))) is not None
    )


def _plain_attributes(tag: Tag, base: str) -> None:
    """Keep links, and whole ones; nothing else that would be counted, repeated or run."""
    for name in list(tag.attrs):
        if name not in _KEPT_ATTRIBUTES:
            del tag[name]
        elif name in {"href", "src"}:
            link = _whole_link(str(tag[name]), base)
            if link is None:
                del tag[name]
            else:
                tag[name] = link
        else:
            tag[name] = " ".join(str(tag[name]).split())[:300]
    if tag.name == "img" and not tag.get("alt"):
        tag.decompose()


def _whole_link(link: str, base: str) -> str | None:
    if len(link) > _LONGEST_URL:
        return None
    try:
        whole = urljoin(base, link.strip())
    except ValueError:
        return None
    return whole if _WEB.match(whole) else None


def _tags(soup: BeautifulSoup, deadline: float) -> Iterator[Tag]:
    for tag in list(soup.find_all(True)):
        _in_time(deadline)
        yield tag


class _Converter(MarkdownConverter):
    """Looks at the clock with every element."""

    def __init__(self, deadline: float) -> None:
        super().__init__(heading_style=ATX, bullets="-", autolinks=True)
        self._deadline = deadline

    def process_element(self, node: PageElement, parent_tags: set[str] | None = None) -> str:
        _in_time(self._deadline)
        text: str = super().process_element(node, parent_tags)  # type: ignore[misc] # not in its stub
        if len(text) > LONGEST:
            raise TooComplex
        return text


def _in_time(deadline: float) -> None:
    if time.thread_time() > deadline:
        raise TooComplex
