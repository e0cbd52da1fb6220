"""Starting, stopping, and starting again."""

from __future__ import annotations

import asyncio
import signal
import stat
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.gateway.process import PATIENCE, Gateway, errors_of, running, start

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.gateway.service import Service


class TestStartingAndStopping:
    async def test_keeps_people_signed_in(self, service: Service, key: Path, port: int) -> None:
        async with running(service, key, port) as first:
            await first.sign_in()
            cookies = dict(first.browser.cookies)
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        async with running(service, key, port) as second:
            second.browser.cookies.update(cookies)
            assert (await second.browser.get("/me")).status_code == 200

    @pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
    async def test_ends_with_open_streams(
        self, service: Service, key: Path, port: int, how: signal.Signals
    ) -> None:
        async with running(service, key, port) as gateway:
            await gateway.sign_in()
            async with gateway.browser.stream("GET", "/stream") as response:
                await anext(response.aiter_bytes())
                errors = await gateway.stop(how)
                await asyncio.wait_for(service.client_gone.wait(), PATIENCE)
        assert "Exception in ASGI" not in errors

    async def test_says_when_the_port_is_taken(
        self, service: Service, gateway: Gateway, key: Path
    ) -> None:
        port = gateway.url.rpartition(":")[2]
        process = await start(service, key, int(port))
        assert f"Port {port} is taken" in await errors_of(process)
        assert process.returncode != 0

    async def test_says_when_the_key_file_holds_something_else(
        self, service: Service, key: Path, port: int
    ) -> None:
        key.parent.mkdir()
        key.write_text('{"kty": "oct"}')
        process = await start(service, key, port)
        assert "holds no signing key" in await errors_of(process)
