"""A connection's secrets are in nothing that its server says."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from app.tools.redaction import Redactor
from app.tools.servers import (
    Credential,
    CredentialKind,
    CredentialRule,
    HttpTransport,
    McpServer,
    StdioTransport,
)

KEY = 'canary-2f9a/é"b'
HTTP = McpServer("notes", HttpTransport("https://notes.test/mcp?api_key=in-the-address"))


def redacted(text: str, server: McpServer = HTTP, **credential: dict[str, str]) -> str:
    return Redactor(server, Credential(1, **credential)).text(text)


class TestAKey:
    @pytest.mark.parametrize(
        "written",
        [
            KEY,
            f"Bearer {KEY}",
            json.dumps(KEY),
            quote(KEY, safe=""),
            base64.b64encode(KEY.encode()).decode(),
        ],
        ids=["bare", "with its scheme", "in JSON", "in an address", "in base64"],
    )
    def test_is_found_however_it_is_written(self, written: str) -> None:
        said = redacted(f"you sent <{written}>", headers={"Authorization": f"Bearer {KEY}"})
        assert "canary" not in said
        assert base64.b64encode(KEY.encode()).decode()[:10] not in said

    def test_of_a_child_is_found(self) -> None:
        assert redacted(f"API_KEY={KEY}", env={"API_KEY": KEY}) == "API_KEY=[redacted]"

    def test_that_is_a_password_is_found_by_itself(self) -> None:
        basic = base64.b64encode(b"ada:correct-horse").decode()
        said = redacted("correct-horse", headers={"Authorization": f"Basic {basic}"})
        assert said == "[redacted]"

    def test_of_the_operators_is_found_in_what_is_configured(self) -> None:
        child = McpServer(
            "notes",
            StdioTransport("notes", env={"DB_PASSWORD": "pass-of-all", "MODE": "production"}),
            credential=CredentialRule(CredentialKind.OAUTH, client_secret="client-secret"),
        )
        said = redacted("pass-of-all client-secret production", child)
        assert said == "[redacted] [redacted] production"
        assert redacted("in-the-address") == "[redacted]"

    def test_is_found_in_what_is_structured(self) -> None:
        redactor = Redactor(HTTP, Credential(1, headers={"X-Key": KEY}))
        assert redactor.value({KEY: [{"a": f"<{KEY}>"}, 1]}) == {
            "[redacted]": [{"a": "<[redacted]>"}, 1]
        }


class TestOtherText:
    def test_is_left_alone(self) -> None:
        said = "the bearer of this token has a key"
        assert redacted(said, headers={"Authorization": f"Bearer {KEY}"}) == said

    def test_is_left_alone_without_a_credential(self) -> None:
        assert redacted("anything") == "anything"
