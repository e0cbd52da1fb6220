"""How people come in, and how they leave."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.acceptance.gateway.process import Gateway

if TYPE_CHECKING:
    from tests.acceptance.gateway.service import Service

HTML = {"Accept": "text/html,application/xhtml+xml"}


class TestSomebodyWhoIsNotSignedIn:
    async def test_is_shown_the_way_in_a_browser_and_back_again(self, gateway: Gateway) -> None:
        response = await gateway.browser.get("/threads/1?tab=a%20b&x", headers=HTML)
        assert response.status_code == 302
        location = response.headers["Location"]
        assert location == f"/oauth2/start?rd={quote('/threads/1?tab=a%20b&x', safe='/')}"
        page = await gateway.browser.get(location)
        assert 'value="/threads/1?tab=a%20b&amp;x"' in page.text

    async def test_is_told_as_a_program(self, gateway: Gateway, service: Service) -> None:
        for method, headers in (("GET", {}), ("POST", HTML), ("DELETE", {})):
            response = await gateway.browser.request(method, "/threads", headers=headers)
            assert response.status_code == 401
            assert response.headers["WWW-Authenticate"] == "Bearer"
            assert response.headers["Content-Type"] == "application/problem+json"
            assert response.json()["code"] == "unauthenticated"
        assert service.requests == 0

    @pytest.mark.parametrize("path", ["/ok", "/.well-known/oauth-client.json"])
    async def test_can_ask_whether_the_service_lives_and_who_it_is_to_other_servers(
        self, gateway: Gateway, service: Service, path: str
    ) -> None:
        forged = {"Authorization": "Bearer a.b.c"}
        assert (await gateway.browser.get(path, headers=forged)).status_code == 200
        assert service.lines("authorization") == []

    @pytest.mark.parametrize("token", ["Bearer a.b.c", "Basic YTpi", "Bearer", "x"])
    async def test_does_not_get_in_with_anything_else(self, gateway: Gateway, token: str) -> None:
        await gateway.sign_in()
        response = await gateway.browser.get("/me", headers={"Authorization": token})
        assert response.status_code == 401, "a bad token is not made good by a cookie"


class TestSigningIn:
    async def test_leads_back_with_a_cookie_that_pages_cannot_read(self, gateway: Gateway) -> None:
        response = await gateway.sign_in(rd="/threads/1")
        assert (response.status_code, response.headers["Location"]) == (303, "/threads/1")
        cookie = response.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie

    @pytest.mark.parametrize(
        "rd",
        [
            "https://evil.example/",
            "//evil.example/",
            "/\\evil.example/",
            "\\\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            " //evil.example",
            "javascript:alert(1)",
            "evil.example",
            "/oauth2/sign_out",
            "",
            "/" + "a" * 3000,
        ],
    )
    async def test_never_leads_elsewhere(self, gateway: Gateway, rd: str) -> None:
        response = await gateway.sign_in(rd=rd)
        assert (response.status_code, response.headers["Location"]) == (303, "/")
        page = await gateway.browser.get("/oauth2/start", params={"rd": rd})
        assert 'name="rd" value="/"' in page.text

    @pytest.mark.parametrize("name", ["", "   ", "a" * 65, "a\x00b", "a\u202eb"])
    async def test_needs_a_name(self, gateway: Gateway, name: str) -> None:
        response = await gateway.sign_in(name)
        assert response.status_code == 422
        assert 'role="alert"' in response.text
        assert "Set-Cookie" not in response.headers

    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://127.0.0.1:1"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ],
    )
    async def test_is_not_done_by_other_sites(
        self, gateway: Gateway, headers: dict[str, str]
    ) -> None:
        for path in ("/oauth2/sign_in", "/oauth2/token"):
            response = await gateway.browser.post(path, data={"name": "eve"}, headers=headers)
            assert response.status_code == 403
        own = {"Origin": gateway.url, "Sec-Fetch-Site": "same-origin"}
        response = await gateway.browser.post("/oauth2/sign_in", data={"name": "e"}, headers=own)
        assert response.status_code == 303

    async def test_shows_a_page_that_runs_nothing(self, gateway: Gateway) -> None:
        page = await gateway.browser.get("/oauth2/start", params={"rd": '/"><script>'})
        policy = page.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "<script" not in page.text
        assert '<label for="name">Your name</label>' in page.text

    @pytest.mark.parametrize(
        ("accepted", "language"),
        [("de-DE,de;q=0.9,en;q=0.8", "de"), ("en,de;q=0.5", "en"), ("fr", "en"), ("x;q=y", "en")],
    )
    async def test_speaks_the_browsers_language(
        self, gateway: Gateway, accepted: str, language: str
    ) -> None:
        page = await gateway.browser.get("/oauth2/start", headers={"Accept-Language": accepted})
        assert f'<html lang="{language}">' in page.text

    @pytest.mark.parametrize("method", ["GET", "POST"])
    async def test_is_undone_by_signing_out(self, gateway: Gateway, method: str) -> None:
        await gateway.sign_in()
        assert (await gateway.browser.get("/me")).status_code == 200
        response = await gateway.browser.request(method, "/oauth2/sign_out")
        assert (response.status_code, response.headers["Location"]) == (303, "/oauth2/start")
        assert (await gateway.browser.get("/me")).status_code == 401
