"""A web page becomes Markdown of what a person would see, whatever is in it."""

from __future__ import annotations

import itertools

import pytest

from app.tools.builtin import markdown
from app.tools.builtin.markdown import convert

URL = "https://stoa.dev/docs/start"


def text_of(html: str) -> str:
    return convert(html, URL)[1]


class TestAPage:
    def test_is_written_as_markdown(self) -> None:
        title, text = convert(
            "<html><head><title> The\n guide </title></head><body><h1>Start</h1>"
            "<p>Read <b>this</b> and <a href='../next'>that</a>.</p>"
            "<ul><li>one<li>two</ul><pre><code>x = 1\ny = 2</code></pre>"
            "<table><tr><th>a<th>b<tr><td>1<td>2</table></body></html>",
            URL,
        )
        assert title == "The guide"
        assert text.split("\n\n") == [
            "# Start",
            "Read **this** and [that](https://stoa.dev/next).",
            "- one\n- two",
            "```\nx = 1\ny = 2\n```",
            "| a | b |\n| --- | --- |\n| 1 | 2 |",
        ]

    def test_has_links_as_its_base_says(self) -> None:
        html = "<base href='https://cdn.dev/v2/'><a href='page'>p</a>"
        assert text_of(html) == "[p](https://cdn.dev/v2/page)"

    @pytest.mark.parametrize("html", ["", "no tag", "https://stoa.dev", "a.txt", "&lt;b&gt;"])
    def test_without_a_tag_is_its_text(self, html: str) -> None:
        assert text_of(html) == html.replace("&lt;", "<").replace("&gt;", ">")

    @pytest.mark.parametrize(
        "html", ["<?xml version='1.0'?><rss><title>a</title>b</rss>", "<!doctype svg><p>b", "<p>b"]
    )
    def test_of_another_language_is_read_as_far_as_it_goes(self, html: str) -> None:
        assert text_of(html).endswith("b")


class TestWhatNobodySees:
    @pytest.mark.parametrize(
        "html",
        [
            "<script>canary()</script>",
            "<style>canary {}</style>",
            "<noscript>canary</noscript>",
            "<template>canary</template>",
            "<!-- canary -->",
            "<p hidden>canary</p>",
            "<div aria-hidden=TRUE>canary</div>",
            "<div style='display: none'>canary</div>",
            "<div style='color:red;DISPLAY:NONE!important'>canary</div>",
            "<div style='visibility:hidden'>canary</div>",
            "<div style='opacity:0'>canary</div>",
            "<div style='font-size:0px'>canary</div>",
            "<div hidden><p><b>canary</b></p></div>",
            "<iframe srcdoc=canary>canary</iframe>",
            "<svg><text>canary</text></svg>",
            "<textarea>canary</textarea>",
            "<input value=canary>",
            "<a href='javascript:canary()'></a>",
            "<p onclick='canary()' data-x=canary class=canary></p>",
            "<img src='canary.png'>",
            "<head><meta name=description content=canary></head>",
        ],
    )
    def test_is_left_out(self, html: str) -> None:
        assert text_of(f"<p>before</p>{html}<p>after</p>").split() == ["before", "after"]

    @pytest.mark.parametrize("style", ["opacity: 0.5", "font-size: 10px", "display: block"])
    def test_is_not_what_only_looks_like_it(self, style: str) -> None:
        assert text_of(f"<p style='{style}'>seen</p>") == "seen"

    def test_is_no_link_but_to_the_web(self) -> None:
        html = "<a href='javascript:a()'>a</a> <a href='data:text/html,b'>b</a> <a href='x'>c</a>"
        assert text_of(html) == "a b [c](https://stoa.dev/docs/x)"


class TestAHostilePage:
    """Each of these takes a library many minutes, its stack, or all memory."""

    @pytest.mark.parametrize(
        "html",
        [
            "<b>" * 6_000 + "end",
            "<blockquote>" * 5_000 + "end",
            "<div>" * 6_000 + "end",
            "<table><tr><td>" * 2_000 + "end",
            "end" + "<!--" * 300_000,
            "end<a " + "x=1 " * 300_000 + ">",
            "<p>end<table><tr>" + "<td colspan=1000>" * 2_000,
            "<h" + "9" * 5_000 + ">end",
            "<fn_cache>a</fn_cache><soup>b</soup><_document_>end",
            "<ol start='" + "9" * 5_000 + "'><li>end",
            "end<td colspan='" + "9" * 5_000 + "'>",
            "<a href='http://[::1'>end</a>",
        ],
        ids=range(12),
    )
    def test_is_read_all_the_same(self, html: str) -> None:
        assert "end" in text_of(html)

    def test_that_would_take_long_is_mere_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # A second passes with each look at the clock: time is over amid the conversion.
        looks = itertools.count()
        monkeypatch.setattr("time.thread_time", lambda: next(looks))
        monkeypatch.setattr(markdown, "SECONDS", 400)
        text = text_of("<ol>" + "<li>item" * 100)
        assert text.split() == ["item"] * 100

    def test_of_endless_tags_is_read_as_far_as_so_many(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(markdown, "MOST_TAGS", 100)
        assert text_of("<p>a" * 100_000).split() == ["a"] * 100

    def test_that_would_become_long_is_mere_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(markdown, "LONGEST", 1_000)
        assert text_of("<blockquote>" * 100 + "a<br>" * 20).split() == ["a"] * 20

    def test_is_given_up_when_it_cannot_even_be_looked_through(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(markdown, "SECONDS", 0)
        with pytest.raises(markdown.TooComplex):
            text_of("<p>a")
