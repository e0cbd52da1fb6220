"""The gateway, the identity provider and the web process agree about who is who."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import yaml

from tests.unit.deploy.composition import DEPLOY, services

FILLED_IN = {
    "PUBLIC_URL": "https://stoa.test",
    "ISSUER_URL": "https://sign-in.test/dex",
}


def proxy() -> dict[str, Any]:
    """oauth2-proxy's options: its file, and what the environment sets."""
    options = tomllib.loads((DEPLOY / "oauth2-proxy/oauth2-proxy.cfg").read_text(encoding="utf-8"))
    for name, value in services(**FILLED_IN)["oauth2-proxy"]["environment"].items():
        options[name.removeprefix("OAUTH2_PROXY_").lower()] = value
    return options


def dex() -> dict[str, Any]:
    """Dex's configuration, with its image's template language filled in."""
    environment = services(**FILLED_IN)["dex"]["environment"]
    text = (DEPLOY / "dex/config.yaml").read_text(encoding="utf-8")
    text = re.sub(r'\{\{ getenv "(\w+)" \}\}', lambda found: environment[found[1]], text)
    text = re.sub(r'\{\{ file\.Read "/run/secrets/(\w+)" \}\}', r"\1", text)
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def web() -> dict[str, str]:
    """The web process's settings."""
    environment: dict[str, str] = services(**FILLED_IN)["web"]["environment"]
    return environment


class TestTheToken:
    def test_is_issued_and_expected_under_one_name(self) -> None:
        assert dex()["issuer"] == proxy()["oidc_issuer_url"] == web()["STOA_IDENTITY_ISSUER"]

    def test_is_for_the_client_that_stoa_expects(self) -> None:
        (client,) = dex()["staticClients"]
        assert client["id"] == proxy()["client_id"] == web()["STOA_IDENTITY_AUDIENCE"]

    def test_is_checked_against_the_same_keys_over_tls_on_the_inner_network(self) -> None:
        keys = web()["STOA_IDENTITY_JWKS_URL"]
        assert keys == proxy()["oidc_jwks_url"]
        assert keys.startswith(f"https://dex:{dex()['web']['https'].rpartition(':')[2]}/")
        assert (
            web()["STOA_IDENTITY_CA"] == dex()["web"]["tlsCert"] == proxy()["provider_ca_files"][0]
        )

    def test_reaches_stoa_in_the_header_it_reads_and_nothing_else_does(self) -> None:
        assert web()["STOA_IDENTITY_HEADER"] == "Authorization"
        assert proxy()["pass_authorization_header"] is True
        assert proxy()["skip_auth_strip_headers"] is True
        assert not any(
            proxy()[f"pass_{name}"] for name in ("basic_auth", "user_headers", "access_token")
        )

    def test_is_renewed_before_it_expires(self) -> None:
        assert _minutes(proxy()["cookie_refresh"]) < _minutes(dex()["expiry"]["idTokens"])
        assert "offline_access" in proxy()["scope"]


class TestSigningIn:
    def test_comes_back_to_where_it_began(self) -> None:
        (client,) = dex()["staticClients"]
        assert client["redirectURIs"] == [proxy()["redirect_url"]]
        assert proxy()["redirect_url"].startswith(FILLED_IN["PUBLIC_URL"])

    def test_is_with_one_secret(self) -> None:
        (client,) = dex()["staticClients"]
        assert proxy()["client_secret_file"] == f"/run/secrets/{client['secret']}"

    def test_makes_the_operator_an_operator_and_nobody_else(self) -> None:
        admins = [
            person["username"]
            for person in dex()["staticPasswords"]
            if web()["STOA_IDENTITY_ADMIN_VALUE"]
            in person.get(web()["STOA_IDENTITY_ADMIN_CLAIM"], ())
        ]
        assert admins == ["operator"]
        assert "groups" in proxy()["scope"].split()

    def test_gives_every_person_an_id_of_their_own(self) -> None:
        ids = [person["userID"] for person in dex()["staticPasswords"]]
        assert len(ids) == len(set(ids))

    def test_ends_where_the_client_says(self) -> None:
        assert web()["STOA_SIGN_OUT_URL"] == "/oauth2/sign_out"


class TestTheProxy:
    def test_leads_to_the_web_processes(self) -> None:
        command = services()["web"]["command"]
        assert command[:1] == ["web"]
        assert proxy()["upstreams"] == ["http://web:8000/"]

    def test_hides_no_path_of_stoas(self) -> None:
        assert proxy()["ping_path"].startswith("/oauth2/")
        assert proxy()["ready_path"].startswith("/oauth2/")

    def test_lets_nobody_past_but_to_whether_it_lives_and_what_it_publishes(self) -> None:
        assert proxy()["skip_auth_routes"] == [
            "GET=^/ok$",
            r"GET=^/\.well-known/(oauth-client|jwks)\.json$",
        ]

    def test_refuses_programs_and_sends_people_who_come_back_from_a_server_to_sign_in(self) -> None:
        (routes,) = proxy()["api_routes"]
        for path in (
            "/memories",
            "/memories/x",
            "/connections",
            "/connections/x/connect",
            "/events",
            "/erasures/x",
        ):
            assert re.search(routes, path), path
        for path in ("/connections/callback", "/tools", "/memory", "/"):
            assert not re.search(routes, path), path


def _minutes(duration: str) -> float:
    return float(duration[:-1]) * {"s": 1 / 60, "m": 1, "h": 60}[duration[-1]]
