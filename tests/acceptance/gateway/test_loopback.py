"""The gateway lets anybody in, so it stays on its machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.dev.errors import DevelopmentError
from app.dev.gateway import GatewaySettings
from tests.acceptance.gateway.process import AUDIENCE, Gateway

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.gateway.service import Service


class TestNamesThatAreNotOfThisMachine:
    @pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""])
    async def test_are_not_served(self, gateway: Gateway, service: Service, host: str) -> None:
        for path in ("/oauth2/start", "/me", "/ok", "/.well-known/jwks.json"):
            response = await gateway.browser.get(path, headers={"Host": host})
            assert response.status_code in {400, 421}
        assert service.requests == 0

    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1:99", "[::1]:2024", "a.localhost:1"])
    async def test_are_not_these(self, gateway: Gateway, host: str) -> None:
        response = await gateway.browser.get("/oauth2/start", headers={"Host": host})
        assert response.status_code == 200

    @pytest.mark.parametrize("host", ["::", "0", "192.168.1.2", "example.com", ""])
    def test_are_not_listened_on(self, tmp_path: Path, host: str) -> None:
        with pytest.raises(DevelopmentError, match="gateway"):
            GatewaySettings("http://127.0.0.1:1", tmp_path / "k", AUDIENCE, host=host)
