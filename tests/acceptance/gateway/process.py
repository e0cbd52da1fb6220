"""The gateway as a process of its own, and a browser before it."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx

from tenancy.identity import JwtIdentitySettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.acceptance.gateway.service import Service

AUDIENCE = "stoa"
ISSUER = "https://gateway.test"
PATIENCE = 60.0
"""Longer than anything takes on a busy machine."""
_START = """
import asyncio, sys
from pathlib import Path
from app.dev.gateway import GatewaySettings, serve_gateway
upstream, key, header, port = sys.argv[1:]
asyncio.run(serve_gateway(GatewaySettings(
    upstream=upstream, key_file=Path(key), audience="stoa", header=header, port=int(port),
    issuer="https://gateway.test")))
"""


class Gateway:
    """A running gateway, seen by somebody who has not been here before."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url
        self.browser = httpx.AsyncClient(base_url=url, timeout=PATIENCE, trust_env=False)
        self.identity = JwtIdentitySettings(
            header="Authorization",
            issuer=ISSUER,
            audience=AUDIENCE,
            jwks_url=f"{url}/.well-known/jwks.json",
        )

    async def sign_in(self, name: str = "Ada", **fields: str) -> httpx.Response:
        """Send the sign-in form."""
        return await self.browser.post("/oauth2/sign_in", data={"name": name, **fields})

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> str:
        """End the process; return what it wrote to its error stream."""
        if self.process.returncode is None:
            self.process.send_signal(how)
        return await errors_of(self.process)


async def start(
    service: Service, key: Path, port: int, header: str = "Authorization"
) -> asyncio.subprocess.Process:
    """Start a gateway and don't wait for it."""
    command = (sys.executable, "-c", _START, service.url, str(key), header, str(port))
    return await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)


async def errors_of(process: asyncio.subprocess.Process) -> str:
    """Wait for a process that is ending, and return its error stream."""
    _, errors = await asyncio.wait_for(process.communicate(), PATIENCE)
    return errors.decode()


@asynccontextmanager
async def running(
    service: Service, key: Path, port: int, header: str = "Authorization"
) -> AsyncIterator[Gateway]:
    """Run a gateway for as long as the block lasts."""
    process = await start(service, key, port, header)
    gateway = Gateway(process, f"http://127.0.0.1:{port}")
    async with gateway.browser:
        try:
            await _listening(gateway)
            yield gateway
        finally:
            await gateway.stop()


async def _listening(gateway: Gateway) -> None:
    async with asyncio.timeout(PATIENCE):
        while gateway.process.returncode is None:
            try:
                await gateway.browser.get("/oauth2/start")
            except httpx.ConnectError:
                await asyncio.sleep(0.05)
            else:
                return
    raise AssertionError(await gateway.stop())
