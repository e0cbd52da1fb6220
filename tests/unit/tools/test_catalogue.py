"""What may stand in an ``mcp.json``, and what is said about what may not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.settings import SettingsError
from app.tools.approval.rules import ServerRules
from app.tools.approval.ruling import Ask
from app.tools.catalogue import Catalogue, own_server
from app.tools.servers import (
    CredentialKind,
    CredentialRule,
    HttpTransport,
    McpServer,
    Scope,
    StdioTransport,
    Timeouts,
)

HTTP = {"url": "https://tools.example/mcp"}
STDIO = {"command": "server"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mcp.json"


def load(file: Path, **servers: Any) -> Catalogue:
    named = {name.replace("_", "-"): entry for name, entry in servers.items()}
    file.write_text(json.dumps({"mcpServers": named}), encoding="utf-8")
    return Catalogue.load([file])


def one(file: Path, entry: Any) -> McpServer:
    return load(file, one=entry).servers["one"]


def complaint(file: Path, entry: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        one(file, entry)
    return str(caught.value)


class TestEntries:
    def test_a_program_is_each_users_own_unless_said_otherwise(self, file: Path) -> None:
        server = one(file, {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}})
        assert server.transport == StdioTransport("npx", ("-y", "x"), {"A": "b"})
        assert server.scope is Scope.PER_USER
        assert server.approval == ServerRules.same(Ask.NEVER)
        assert server.timeouts == Timeouts()

    def test_an_address_with_all_that_can_be_said_of_it(self, file: Path) -> None:
        server = one(
            file,
            {
                "type": "http",
                **HTTP,
                "headers": {"X-Team": "a"},
                "stoa": {
                    "scope": "per_user",
                    "title": "Far",
                    "approval": {"write": "always"},
                    "trust": {"read_only": ["look"], "idempotent": True, "idempotency_ttl": 60},
                    "timeout": {"connect": 1, "list": 2, "call": 3},
                    "tools": {"allow": ["look", "write"], "deny": ["write"]},
                    "credential": {"kind": "header", "name": "X-Key"},
                },
            },
        )
        assert server.transport == HttpTransport(HTTP["url"], {"X-Team": "a"})
        assert server.title == "Far"
        assert server.approval.of("write").word == "always"
        assert server.approval.of("look").word == "never"
        assert server.trust.is_read_only("look")
        assert not server.trust.is_read_only("write")
        assert server.trust.is_idempotent("write")
        assert server.timeouts == Timeouts(1, 2, 3)
        assert [server.offers(tool) for tool in ("look", "write", "other")] == [True, False, False]
        assert server.credential == CredentialRule(CredentialKind.HEADER, "X-Key", "{key}")

    def test_a_number_of_seconds_is_for_calls(self, file: Path) -> None:
        assert one(file, {**STDIO, "stoa": {"timeout": 5}}).timeouts == Timeouts(call=5)

    def test_variables_arrive_as_text(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("STOA_DATABASE_URL", "postgresql://secret")
        server = one(file, {**STDIO, "env": {"A": "${STOA_DATABASE_URL}"}})
        assert isinstance(server.transport, StdioTransport)
        assert server.transport.env == {"A": "${STOA_DATABASE_URL}"}

    def test_a_client_that_is_registered_beforehand(self, file: Path) -> None:
        said = {
            "kind": "oauth",
            "client_id": "stoa",
            "client_secret": "s",
            "issuer": "https://id.example",
            "scopes": ["read"],
            "origins": ["http://id.internal:8080"],
        }
        rule = one(file, {**HTTP, "stoa": {"credential": said}}).credential
        assert rule.kind is CredentialKind.OAUTH
        assert (rule.client_id, rule.client_secret, rule.issuer) == (
            "stoa",
            "s",
            "https://id.example",
        )
        assert (rule.scopes, rule.origins) == (("read",), ("http://id.internal:8080",))

    def test_secrets_are_in_no_text_of_a_server(self, file: Path) -> None:
        server = one(file, {**HTTP, "headers": {"X-Key": "canary"}})
        assert "canary" not in repr(server)
        assert "canary" not in repr(one(file, {**STDIO, "env": {"A": "canary"}}))


class TestRefusals:
    @pytest.mark.parametrize(
        ("entry", "said"),
        [
            ({}, "say either `command`"),
            ({**STDIO, **HTTP}, "say either `command`"),
            ({**STDIO, "cwd": "/"}, "unknown key `cwd`: leave it out"),
            ({**STDIO, "timeout": 5}, "unknown key `timeout`: say `stoa.timeout`"),
            ({**STDIO, "agrs": []}, "did you mean `args`"),
            ({**STDIO, "stoa": {"scop": "shared"}}, "unknown key `scop` in `stoa`: did you mean"),
            ({**STDIO, "stoa": {"scope": "all"}}, "`stoa.scope`: must be 'shared' or"),
            ({**STDIO, "stoa": {"timeout": 0}}, "`stoa.timeout.call`"),
            ({**STDIO, "stoa": {"timeout": {"cal": 1}}}, "did you mean `call`"),
            ({**STDIO, "type": "sse"}, "streamable HTTP only"),
            ({**HTTP, "type": "sse"}, "streamable HTTP only"),
            ({**HTTP, "args": []}, "`args` means nothing beside `url`"),
            ({**STDIO, "headers": {}}, "`headers` means nothing beside `command`"),
            ({"command": "./server"}, "absolute path"),
            ({"url": "ftp://x"}, "http or https"),
            ({"url": "https://me:canary@x"}, "must not have a password"),
            ({**HTTP, "headers": {"a b": "c"}}, "`headers"),
            ({**HTTP, "headers": {"a": "b\r\nc: d"}}, "`headers.a`"),
            ({**STDIO, "env": {"A": 1}}, "`env.A`"),
            ({**STDIO, "env": {"A=B": "c"}}, "`env"),
            (
                {**STDIO, "args": ["{user_folder}"], "stoa": {"scope": "shared"}},
                "make it `per_user`",
            ),
            ({**STDIO, "autoApprove": ["a"]}, "say `stoa.approval` instead"),
            ({**STDIO, "args": "-y"}, "`args`: must be a list"),
            ({**STDIO, "args": [1]}, "`args.0`: must be text"),
            ({**STDIO, "env": {"A-B": "c"}}, "`env.A-B`: is not a name"),
            ({**STDIO, "stoa": {"trust": {"read_only": "read"}}}, "must be a list"),
            ({**STDIO, "stoa": {"trust": {"idempotency_ttl": "1h"}}}, "must be a number"),
            ("canary", "must be an object"),
        ],
    )
    def test_say_what_to_do_and_quote_nothing(self, file: Path, entry: Any, said: str) -> None:
        text = complaint(file, entry)
        assert text.startswith(f"{file}: server `one`")
        assert said in text
        assert "canary" not in text

    @pytest.mark.parametrize(
        ("base", "credential", "said"),
        [
            (HTTP, {}, "`stoa.credential.kind`: is missing"),
            (HTTP, {"kind": "header", "template": "no place"}, "must have `{key}`"),
            (HTTP, {"kind": "none", "name": "X"}, "means nothing for the kind `none`"),
            (HTTP, {"kind": "environment", "name": "A"}, "needs a server with a `command`"),
            (STDIO, {"kind": "environment"}, "say the variable's `name`"),
            (STDIO, {"kind": "header"}, "needs a server with a `url`"),
            (STDIO, {"kind": "oauth"}, "needs a server with a `url`"),
            (HTTP, {"kind": "oauth", "client_secret": "canary"}, "needs its `client_id`"),
            (HTTP, {"kind": "oauth", "origins": ["id.example.com"]}, "look like https://host"),
            (HTTP, {"kind": "oauth", "issuer": "ftp://id.example.com"}, "look like https://host"),
            ({**STDIO, "env": {"A": "b"}}, {"kind": "environment", "name": "A"}, "take it out"),
            ({**HTTP, "headers": {"authorization": "b"}}, {"kind": "header"}, "take it out"),
        ],
    )
    def test_of_credentials(self, file: Path, base: Any, credential: Any, said: str) -> None:
        text = complaint(file, {**base, "stoa": {"credential": credential}})
        assert said in text
        assert "canary" not in text

    def test_a_shared_server_has_no_users_credential(self, file: Path) -> None:
        stoa = {"scope": "shared", "credential": {"kind": "header"}}
        assert "make it `per_user`" in complaint(file, {**HTTP, "stoa": stoa})


class TestNames:
    @pytest.mark.parametrize("name", ["", "A", "a__b", "a_b", "-a", "a b", "x" * 41, "ä"])
    def test_are_refused_where_they_would_be_changed(self, file: Path, name: str) -> None:
        file.write_text(json.dumps({"mcpServers": {name: STDIO}}), encoding="utf-8")
        with pytest.raises(SettingsError, match="is not a name"):
            Catalogue.load([file])
        with pytest.raises(ValueError, match="is not a name"):
            own_server(name, HTTP["url"], CredentialRule())

    @pytest.mark.parametrize("name", ["memory", "fetch", "time", "stoa", "callback"])
    def test_that_are_reserved_shadow_nothing(self, file: Path, name: str) -> None:
        with pytest.raises(SettingsError, match="is reserved"):
            load(file, **{name: STDIO})

    def test_stand_in_one_file_only(self, tmp_path: Path) -> None:
        files = [tmp_path / "a.json", tmp_path / "b.json"]
        for each in files:
            each.write_text(json.dumps({"mcpServers": {"one": STDIO}}), encoding="utf-8")
        with pytest.raises(SettingsError, match="in another file too"):
            Catalogue.load(files)

    def test_stand_there_once(self, file: Path) -> None:
        file.write_text('{"mcpServers": {"one": {"command": "a"}, "one": {"command": "b"}}}')
        with pytest.raises(SettingsError, match="twice"):
            Catalogue.load([file])


class TestFiles:
    def test_may_be_several_or_none(self, tmp_path: Path) -> None:
        files = [tmp_path / "a.json", tmp_path / "b.json"]
        for each in files:
            each.write_text(json.dumps({"mcpServers": {each.stem: STDIO}}), encoding="utf-8")
        assert set(Catalogue.load(files).servers) == {"a", "b"}
        assert Catalogue.load([]).servers == {}

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"{", "line 1, is not JSON"),
            (b'{\n"mcpServers": {},}', "line 2, is not JSON .no comments, no comma at an end"),
            (b"[]", "must be of the form"),
            (b"{}", "must be of the form"),
            (b'{"mcpServers": []}', "must be of the form"),
            (b'{"mcpServers": {}, "inputs": []}', "unknown key `inputs`"),
            (b"\xff", "not UTF-8"),
            (b"[" * 100_000, "nested too deeply"),
        ],
    )
    def test_that_are_none_are_told_of(self, file: Path, content: bytes, said: str) -> None:
        file.write_bytes(content)
        with pytest.raises(SettingsError, match=said):
            Catalogue.load([file])

    def test_may_begin_as_windows_editors_have_them_begin(self, file: Path) -> None:
        file.write_bytes(b'\xef\xbb\xbf{"mcpServers": {"one": {"command": "a"}}}')
        assert set(Catalogue.load([file]).servers) == {"one"}

    def test_that_are_not_there_are_told_of(self, file: Path) -> None:
        with pytest.raises(SettingsError, match=r"STOA_MCP_CONFIG: .*mcp\.json cannot be read"):
            Catalogue.load([file])

    def test_the_example_is_one(self) -> None:
        example = Path(__file__).parents[3] / "deploy" / "mcp.json"
        assert isinstance(Catalogue.load([example]).servers["files"].transport, StdioTransport)


class TestVersions:
    def test_are_the_same_for_the_same_configuration(self, file: Path) -> None:
        assert one(file, STDIO).version == one(file, STDIO).version

    @pytest.mark.parametrize(
        "change",
        [
            {"args": ["a"]},
            {"env": {"A": "b"}},
            {"stoa": {"timeout": 5}},
            {"stoa": {"tools": {"deny": ["a"]}}},
            {"stoa": {"trust": {"read_only": ["a"]}}},
        ],
    )
    def test_are_others_for_another(self, file: Path, change: dict[str, Any]) -> None:
        assert one(file, STDIO).version != one(file, {**STDIO, **change}).version

    def test_of_own_servers_come_from_their_address(self) -> None:
        first, again, other = (
            own_server("one", url, CredentialRule())
            for url in ("https://a.example", "https://a.example", "https://b.example")
        )
        assert first == again
        assert first.version != other.version
        assert first.is_own
