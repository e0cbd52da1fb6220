"""The tool ``fetch``, as an agent calls it, against real sites."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from app.outbound.addresses import Address
from app.stopping import RunStop
from app.tools.builtin.fetch import ELSEWHERE, Fetcher, fetch_tool
from app.tools.builtin.robots import LARGEST, RobotsMemory
from app.tools.calls import FAILED, run_call
from tests.support.sites import Site, answer, certificate, redirect, site

PATIENCE = 60
INNER = "127.83.7.31"
PAGE = answer(b"<title>Welcome</title><h1>Hello</h1><p>to <a href='/next'>all</a>")


async def inner(_name: str) -> Sequence[Address]:
    return [ip_address(INNER)]


def fetcher(*sites: Site, **options: Any) -> Fetcher:
    trusted = frozenset().union(*(each.trusted for each in sites))
    given: dict[str, Any] = {
        "visitor": "me",
        "memory": RobotsMemory(),
        "trusted": trusted,
        "resolve": inner,
    }
    return Fetcher(**given | options)


async def fetching(
    by: Fetcher, url: str, stop: RunStop | None = None, **arguments: Any
) -> ToolMessage:
    tool = fetch_tool(by)
    arguments = {"url": url, **arguments}
    return await run_call(
        {"name": "fetch", "args": arguments, "id": "1", "type": "tool_call"}, {"fetch": tool}, stop
    )


async def fetched(by: Fetcher, url: str, **arguments: Any) -> str:
    found = await fetching(by, url, **arguments)
    assert found.status == "success", found.text
    return found.text


async def refused(by: Fetcher, url: str, **arguments: Any) -> str:
    found = await fetching(by, url, **arguments)
    assert found.status == "error", found.text
    return found.text


async def forever(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.01)


class TestAPage:
    async def test_is_shown_as_markdown_with_its_address(self) -> None:
        async with site({"/a": PAGE}) as web:
            text = await fetched(fetcher(web), web.url + "/a#part")
        assert text == (
            f"URL: {web.url}/a\nType: text/html\nTitle: Welcome\n\n"
            f"# Hello\n\nto [all]({web.url}/next)"
        )

    async def test_is_asked_for_by_a_robot_that_says_who_it_is(self) -> None:
        async with site({"/a": PAGE}) as web:
            await fetched(fetcher(web), web.url + "/a")
        assert web.asked == ["/robots.txt", "/a"]
        assert all("User-Agent: Stoa/0." in head for head in web.heads)

    async def test_is_read_on_in_parts(self) -> None:
        async with site({"/a": answer(b"0123456789", Content_Type="text/plain")}) as web:
            first = await fetched(fetcher(web), web.url + "/a", max_length=6)
            assert first.endswith("Fetch again with start=6 for more.\n\n012345")
            assert (await fetched(fetcher(web), web.url + "/a", start=6)).endswith("\n\n6789")

    @pytest.mark.parametrize(
        ("reply", "said"),
        [
            (answer(b"", status="404 Not Found"), "The server answered 404."),
            (answer(b"", status="503 Service Unavailable"), "The server answered 503."),
            (
                answer(b"\x89PNG", Content_Type="image/png"),
                "The address leads to something of type image/png, which is not text.",
            ),
            (answer(bytes(3 * 1024 * 1024)), "The server's answer is too large."),
            (answer(b"", Content_Length="9"), "The server's answer could not be read."),
        ],
        ids=["missing", "failing", "image", "large", "cut"],
    )
    async def test_that_cannot_be_had_is_said_not_to_be(self, reply: bytes, said: str) -> None:
        async with site({"/a": reply}) as web:
            assert await refused(fetcher(web), web.url + "/a") == said

    async def test_that_is_no_text_is_not_downloaded(self) -> None:
        async def film(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n")
            await forever(writer)

        async with site({"/a": film}) as web:
            assert "video/mp4" in await refused(fetcher(web), web.url + "/a")
            await asyncio.wait_for(web.left.wait(), PATIENCE)

    async def test_that_drips_is_left_in_time(self) -> None:
        async with site({"/a": forever}) as web:
            said = await refused(fetcher(web, seconds=0.3), web.url + "/a")
        assert said == "The page took too long."

    async def test_is_left_when_the_run_is_stopped(self) -> None:
        asked, stop = asyncio.Event(), RunStop()

        async def slow(writer: asyncio.StreamWriter) -> None:
            asked.set()
            await forever(writer)

        async with site({"/a": slow}) as web:
            call = asyncio.create_task(fetching(fetcher(web), web.url + "/a", stop))
            await asyncio.wait_for(asked.wait(), PATIENCE)
            stop.cancelled.set()
            assert "stopped" in (await call).text
            await asyncio.wait_for(web.left.wait(), PATIENCE)


class TestAnAddress:
    @pytest.mark.parametrize(
        "url",
        [
            "stoa.dev",
            "file:///etc/passwd",
            "http://localhost/",
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://[::ffff:169.254.169.254]/",
            "http://me:secret@stoa.dev/",
            "https://stoa.dev:5432/",
        ],
    )
    async def test_that_is_no_public_one_is_refused(self, url: str) -> None:
        assert (await refused(fetcher(), url)).startswith("The address ")

    async def test_whose_name_leads_inside_is_as_unreachable_as_any(self) -> None:
        async with site(host=INNER, port=8443) as secret:
            said = await refused(fetcher(), "https://wiki.stoa.dev:8443/")
        assert (said, secret.connections) == ("The server could not be reached.", 0)


class TestARedirect:
    async def test_is_followed_to_its_end_and_the_end_is_told(self) -> None:
        async with site({"/b": PAGE}) as there, site() as web:
            web.replies |= {"/": redirect("/a"), "/a": redirect(there.url + "/b")}
            text = await fetched(fetcher(web, there), web.url + "/")
        assert text.startswith(f"URL: {there.url}/b\n")

    async def test_inside_is_refused_at_any_hop(self) -> None:
        async with site({"/": PAGE}) as secret, site() as web:
            web.replies |= {"/": redirect("/a"), "/a": redirect(secret.url)}
            said = await refused(fetcher(web), web.url + "/")
        assert said == "The address must not name this port."
        assert secret.connections == 0

    @pytest.mark.parametrize(
        "target", ["http://127.0.0.1/", "http://[::1]/", "file:///etc/passwd", "http://a.local/"]
    )
    async def test_to_what_may_not_be_asked_is_refused(self, target: str) -> None:
        async with site({"/": redirect(target)}) as web:
            assert (await refused(fetcher(web), web.url)).startswith("The address must ")

    async def test_from_https_to_http_is_refused(self, tmp_path: Path) -> None:
        authority = certificate(tmp_path, "localhost")
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(authority, authority.with_name("key.pem"))
        known = ssl.create_default_context(cafile=authority)
        async with site({"/": PAGE}) as plain, site(tls=tls, name="localhost") as secure:
            secure.replies |= {"/": redirect(plain.url), "/a": redirect("/b"), "/b": PAGE}
            by = fetcher(plain, secure, tls=known)
            said = await refused(by, secure.url + "/")
            await fetched(by, secure.url + "/a")
        assert said == "The address leads from https to an address without, and is left."
        assert plain.connections == 0

    async def test_is_left_where_it_leads_from_one_to_another_without_end(self) -> None:
        async with site({"/": redirect("/")}) as web:
            said = await refused(fetcher(web), web.url + "/")
        assert said == "The address leads from one to another without an end."
        assert web.asked.count("/") == 6

    async def test_to_another_host_is_told_where_each_host_is_approved(self) -> None:
        async with site({"/b": PAGE}) as there, site() as web:
            web.replies |= {"/": redirect("/a"), "/a": redirect(there.url + "/b#c")}
            by = fetcher(web, there, leaves_host=False)
            said = await refused(by, web.url + "/")
            assert said == f"{ELSEWHERE} {there.url}/b"
            assert there.connections == 0
            await fetched(by, there.url + "/b")

    async def test_within_a_host_is_followed_however_it_is_spelled(self) -> None:
        async with site() as web:
            web.replies |= {"/": redirect(web.url.replace("http", "HTTP") + "/a"), "/a": PAGE}
            await fetched(fetcher(web, leaves_host=False), web.url + "/")

    @pytest.mark.parametrize("target", ["http://a:b/", "http://[::g]/", "/\x01", "//", "x" * 9999])
    async def test_to_nonsense_is_refused(self, target: str) -> None:
        async with site({"/": redirect(target)}) as web:
            said = await refused(fetcher(web), web.url)
        assert said != FAILED


class TestRobots:
    @pytest.mark.parametrize(
        ("rules", "path", "is_allowed"),
        [
            ("User-agent: *\nDisallow: /", "/a", False),
            ("User-agent: *\nDisallow: /private", "/private/a", False),
            ("User-agent: *\nDisallow: /private", "/a", True),
            ("User-agent: stoa\nDisallow: /", "/a", False),
            ("User-agent: stoa\nAllow: /\n\nUser-agent: *\nDisallow: /", "/a", True),
            ("User-agent: other\nDisallow: /", "/a", True),
            ("User-agent: *\nDisallow: /*?secret=", "/a?secret=1", False),
            ("", "/a", True),
            ("<html>no rules</html>", "/a", True),
        ],
    )
    async def test_are_heeded(self, rules: str, path: str, is_allowed: bool) -> None:
        async with site({"/robots.txt": answer(rules.encode()), path: PAGE}) as web:
            found = await fetching(fetcher(web), web.url + path)
        assert (found.status == "success") is is_allowed
        assert (path in web.asked) is is_allowed

    @pytest.mark.parametrize(
        ("status", "is_allowed"),
        [
            ("401 Unauthorized", True),
            ("404 Not Found", True),
            ("410 Gone", True),
            ("500 Internal Server Error", False),
            ("503 Service Unavailable", False),
        ],
    )
    async def test_that_cannot_be_read_allow_or_forbid_as_the_standard_says(
        self, status: str, is_allowed: bool
    ) -> None:
        async with site({"/robots.txt": answer(b"", status=status), "/a": PAGE}) as web:
            found = await fetching(fetcher(web), web.url + "/a")
        assert (found.status == "success") is is_allowed
        assert is_allowed or "cannot say now" in found.text

    async def test_are_heeded_at_every_hop(self) -> None:
        rules = answer(b"User-agent: *\nDisallow: /b")
        async with site({"/robots.txt": rules, "/b": PAGE}) as there, site() as web:
            web.replies["/"] = redirect(there.url + "/b")
            said = await refused(fetcher(web, there), web.url + "/")
        assert "robots.txt" in said
        assert there.asked == ["/robots.txt"]

    async def test_are_looked_for_on_no_other_host_where_each_is_approved(self) -> None:
        rules = answer(b"User-agent: *\nDisallow: /", Content_Type="text/plain")
        async with site({"/robots.txt": rules}) as there, site({"/a": PAGE}) as web:
            web.replies["/robots.txt"] = redirect(there.url + "/robots.txt")
            await fetched(fetcher(web, there, leaves_host=False), web.url + "/a")
            assert there.connections == 0
            await refused(fetcher(web, there), web.url + "/a")

    async def test_are_read_where_a_redirect_leads(self) -> None:
        rules = {"/robots.txt": redirect("/rules"), "/rules": answer(b"User-agent: *\nDisallow: /")}
        async with site({**rules, "/a": PAGE}) as web:
            assert "robots.txt" in await refused(fetcher(web), web.url + "/a")

    async def test_that_lead_inside_are_taken_for_missing(self) -> None:
        async with site() as secret, site({"/a": PAGE}) as web:
            web.replies["/robots.txt"] = redirect(secret.url)
            await fetched(fetcher(web), web.url + "/a")
        assert secret.connections == 0

    async def test_count_as_far_as_they_are_read(self) -> None:
        rules = b"User-agent: *\nDisallow: /a\n" + b"#" * LARGEST + b"\nDisallow: /b\n"
        async with site({"/robots.txt": answer(rules), "/a": PAGE, "/b": PAGE}) as web:
            await refused(fetcher(web), web.url + "/a")
            await fetched(fetcher(web), web.url + "/b")

    async def test_for_a_crowd_of_robots_forbid_and_cost_nothing(self) -> None:
        rules = b"".join(b"User-agent: r%d\n" % each for each in range(9000))
        rules += b"".join(b"Disallow: /%d\n" % each for each in range(9000))
        async with site({"/robots.txt": answer(rules), "/a": PAGE}) as web:
            assert "robots.txt" in await refused(fetcher(web), web.url + "/a")


class TestWhatIsRememberedOfRobots:
    async def test_spares_a_site_the_question(self) -> None:
        by = RobotsMemory()
        async with site({"/a": PAGE}) as web:
            await fetched(fetcher(web, memory=by), web.url + "/a")
            await fetched(fetcher(web, memory=by), web.url + "/a")
        assert web.asked == ["/robots.txt", "/a", "/a"]

    async def test_is_nobody_elses_to_notice(self) -> None:
        by = RobotsMemory()
        async with site({"/a": PAGE}) as web:
            await fetched(fetcher(web, memory=by, visitor="me"), web.url + "/a")
            await fetched(fetcher(web, memory=by, visitor="you"), web.url + "/a")
        assert web.asked.count("/robots.txt") == 2

    async def test_is_asked_anew_when_it_is_old(self) -> None:
        by = RobotsMemory(seconds=0)
        async with site({"/a": PAGE}) as web:
            await fetched(fetcher(web, memory=by), web.url + "/a")
            await fetched(fetcher(web, memory=by), web.url + "/a")
        assert web.asked.count("/robots.txt") == 2

    async def test_is_of_the_last_sites_only(self) -> None:
        by = RobotsMemory(most=1)
        async with site({"/a": PAGE}) as web, site({"/a": PAGE}) as other:
            for each in (web, other, web):
                await fetched(fetcher(web, other, memory=by), each.url + "/a")
        assert web.asked.count("/robots.txt") == 2


class TestReadingAPage:
    async def test_leaves_the_event_loop_free(self) -> None:
        heavy = answer(b"<ol>" + b"<li>item" * 1_500)
        async with site({"/a": heavy}) as web:
            call = asyncio.create_task(fetching(fetcher(web), web.url + "/a"))
            turns = 0
            while not call.done():
                await asyncio.sleep(0.01)
                turns += 1
            assert (await call).status == "success"
        assert turns > 10
