"""Whatever a token endpoint answers, it comes to tokens or to an error that is expected."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from app.connections.oauth.client import Client
from app.connections.oauth.endpoint import oauth_client, redeem_code, renew
from app.connections.oauth.errors import (
    AuthorizationFailed,
    AuthorizationLost,
    AuthorizationServerUnavailable,
)
from app.connections.oauth.tokens import Grant, Tokens

GRANT = Grant("https://as.example", "https://as.example/token", "c", "none", "https://mcp.example")
TOKEN: dict[str, Any] = {"token_type": "Bearer", "access_token": "a"}
EXPECTED = (AuthorizationFailed, AuthorizationLost, AuthorizationServerUnavailable)


@pytest.mark.parametrize(
    "said",
    [
        *(b"null", b"[]", b"1", b'"error"', b"{", b"[" * 100_000),
        json.dumps({**TOKEN, "expires_in": 10**400}).encode(),
        json.dumps({**TOKEN, "expires_in": [1]}).encode(),
        json.dumps({**TOKEN, "expires_in": {}}).encode(),
        *(json.dumps({**TOKEN, "expires_in": float(each)}).encode() for each in ("nan", "inf")),
        json.dumps({**TOKEN, "expires_at": [1]}).encode(),
        json.dumps({"error": [1], "error_description": {}}).encode(),
        json.dumps({"error": {}, "error_description": 1}).encode(),
    ],
    ids=lambda said: said[:60].decode(),
)
async def test_an_answer_of_any_shape_is_one_that_is_of_no_use(said: bytes) -> None:
    json_says = {"content-type": "application/json"}
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, content=said, headers=json_says)
    )
    async with oauth_client(Client("c", "none"), transport) as oauth:
        with pytest.raises(EXPECTED):
            await redeem_code(oauth, GRANT, code="c", verifier="v", redirect_uri="https://us/")
        with pytest.raises(EXPECTED):
            await renew(oauth, Tokens(GRANT, "a", "r"))
