"""When people are asked before a host of the web is visited."""

from __future__ import annotations

from typing import Any

import pytest

from app.tools.approval.ruling import Ask
from app.tools.builtin.visits import UNKNOWN, Visits
from app.tools.effects import Needs
from app.tools.refusal import ToolRefusal
from app.tools.site import CallSite, site_of_call
from app.tools.waiting import NotApproved
from tenancy.database.engine import DatabaseUnavailable


class Desk:
    """Hears what is to be admitted, and refuses as it is told."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[tuple[str, Needs]] = []
        self._error = error

    async def admit(self, site: CallSite, tool: str, arguments: None, needs: Needs) -> None:
        assert (site, arguments) == (SITE, None)
        self.asked.append((tool, needs))
        if self._error is not None:
            raise self._error


SITE = CallSite("message", "call")


@pytest.fixture(autouse=True)
def place() -> None:
    site_of_call.set(SITE)


def visits(ask: Ask = Ask.FIRST_USE, desk: Desk | None = None) -> Visits:
    return Visits(ask, desk or Desk(), frozenset({"http://127.0.0.1:9000"}))


def host(url: object) -> str:
    ruling = visits().ruling({"url": url})
    assert ruling.ask is Ask.FIRST_USE
    return ruling.subject


class TestAHost:
    @pytest.mark.parametrize(
        "url",
        [
            "https://example.com",
            "http://example.com/",
            "https://EXAMPLE.com/A?b=c#d",
            "https://example.com:443/",
            "http://example.com:80/",
            "HTTPS://Example.COM",
        ],
    )
    def test_is_one_however_it_is_spelled(self, url: str) -> None:
        assert host(url) == "example.com"

    def test_is_told_as_the_network_knows_it(self) -> None:
        assert host("https://BÜCHER.de/") == host("https://xn--bcher-kva.de") == "xn--bcher-kva.de"
        # Letters that only look alike are another host.
        assert host("https://\u0430\u0440\u0440le.com") == "xn--le-6kc8da.com"

    def test_is_another_under_another_name_or_port(self) -> None:
        hosts = {
            host(f"https://{name}/")
            for name in ("example.com", "www.example.com", "example.com:8443", "1.1.1.1")
        }
        assert hosts == {"example.com", "www.example.com", "example.com:8443", "1.1.1.1"}

    def test_may_be_one_that_the_operator_trusts(self) -> None:
        assert host("http://127.0.0.1:9000/a") == "127.0.0.1:9000"

    @pytest.mark.parametrize(
        "url",
        [
            "https://example.com./",
            "https://me@example.com/",
            "https://example.com\\@evil.com/",
            "https://127.0.0.1/",
            "https://example.com:22/",
            "file:///etc/passwd",
            "",
            None,
            7,
            ["https://example.com"],
        ],
    )
    def test_that_is_never_visited_needs_nobodys_word(self, url: object) -> None:
        ruling = visits(Ask.ALWAYS).ruling({"url": url})
        assert (ruling.ask, ruling.subject) == (Ask.NEVER, "")

    @pytest.mark.parametrize("more", [{"max_length": 10**9}, {"start": -1}, {"start": "some"}])
    def test_is_not_visited_by_a_call_that_is_refused(self, more: dict[str, Any]) -> None:
        ruling = visits(Ask.ALWAYS).ruling({"url": "https://example.com", **more})
        assert ruling.ask is Ask.NEVER


class TestAVisit:
    async def test_is_looked_at_where_it_is_made(self) -> None:
        desk = Desk()
        asking = visits(desk=desk)
        await asking.require_approval({"url": "https://example.com/a"})
        ruling = asking.ruling({"url": "https://example.com/a"})
        assert desk.asked == [("fetch", Needs(ruling.version, "example.com"))]

    async def test_that_is_not_approved_is_not_made(self) -> None:
        asking = visits(desk=Desk(NotApproved(("policy",))))
        with pytest.raises(NotApproved):
            await asking.require_approval({"url": "https://example.com/a"})

    async def test_is_not_made_where_that_cannot_be_known(self) -> None:
        asking = visits(desk=Desk(DatabaseUnavailable()))
        with pytest.raises(ToolRefusal, match=UNKNOWN):
            await asking.require_approval({"url": "https://example.com/a"})

    async def test_is_free_where_the_operator_says_so(self) -> None:
        desk = Desk()
        free = visits(Ask.NEVER, desk)
        await free.require_approval({"url": "https://example.com/a"})
        assert desk.asked == []
        assert free.are_free

    def test_is_ruled_by_another_policy_once_the_setting_is_another(self) -> None:
        versions = {visits(ask).ruling({"url": "https://a.com"}).version for ask in Ask}
        assert len(versions) == len(Ask)
