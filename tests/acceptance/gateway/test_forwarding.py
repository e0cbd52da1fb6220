"""What crosses the gateway, in which form, and when."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.acceptance.gateway.process import PATIENCE, Gateway, running
from tests.acceptance.gateway.service import Service
from tests.support.held_ports import held_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class TestForwarding:
    async def test_keeps_method_path_and_body_as_they_are(self, gateway: Gateway) -> None:
        await gateway.sign_in()
        target = "/a%2Fb//c%20d/%C3%A4?x=%2F&y=a+b&z"
        response = await gateway.browser.put(target, content="ä" * 10)
        assert response.json() == {"method": "PUT", "target": target, "body": "ä" * 10}
        assert response.headers.get_list("Set-Cookie") == ["a=1", "b=2"]
        assert "Keep-Alive" not in response.headers
        assert (await gateway.browser.head("/a")).status_code == 200
        assert (await gateway.browser.get("/unchanged")).status_code == 304

    async def test_passes_a_body_on_while_it_is_being_sent(
        self, gateway: Gateway, service: Service
    ) -> None:
        await gateway.sign_in()

        async def body() -> AsyncIterator[bytes]:
            yield b"begin "
            await service.begun.wait()
            yield b"end"

        response = await gateway.browser.post("/upload", content=body())
        assert response.json()["body"] == "begin end"

    async def test_passes_events_on_as_they_happen(
        self, gateway: Gateway, service: Service
    ) -> None:
        await gateway.sign_in()
        async with gateway.browser.stream("GET", "/stream") as response:
            chunks = response.aiter_bytes()
            assert await anext(chunks) == b"data: 1\n\n"
            service.go_on.set()
            assert await anext(chunks) == b"data: 2\n\n"

    async def test_tells_the_service_at_once_when_the_client_leaves_a_stream(
        self, gateway: Gateway, service: Service
    ) -> None:
        await gateway.sign_in()
        async with gateway.browser.stream("GET", "/stream") as response:
            await anext(response.aiter_bytes())
        await asyncio.wait_for(service.client_gone.wait(), PATIENCE)

    async def test_tells_the_service_at_once_when_the_client_stops_waiting(
        self, gateway: Gateway, service: Service
    ) -> None:
        await gateway.sign_in()
        asking = asyncio.create_task(gateway.browser.post("/silent", json={}))
        await asyncio.wait_for(service.begun.wait(), PATIENCE)
        asking.cancel()
        await asyncio.wait_for(service.client_gone.wait(), PATIENCE)

    async def test_tells_the_service_at_once_when_the_client_leaves_in_mid_body(
        self, gateway: Gateway, service: Service
    ) -> None:
        await gateway.sign_in()

        async def body() -> AsyncIterator[bytes]:
            yield b"begin"
            await service.client_gone.wait()

        sending = asyncio.create_task(gateway.browser.post("/upload", content=body()))
        await asyncio.wait_for(service.begun.wait(), PATIENCE)
        sending.cancel()
        await asyncio.wait_for(service.client_gone.wait(), PATIENCE)

    async def test_refuses_a_body_that_an_offer_to_switch_protocols_hides(
        self, gateway: Gateway
    ) -> None:
        await gateway.sign_in()
        offer = {"Connection": "Upgrade", "Upgrade": "h2c"}
        response = await gateway.browser.post("/upload", content=b"hidden", headers=offer)
        # By us, or by the parser already if headers and body came in one piece.
        assert response.status_code == 400

    async def test_does_not_make_a_broken_answer_look_whole(self, gateway: Gateway) -> None:
        await gateway.sign_in()
        with pytest.raises(httpx.RemoteProtocolError):
            await gateway.browser.get("/broken")

    async def test_says_when_the_service_is_not_there(self, key: Path, port: int) -> None:
        with held_port() as nobodys:
            nobody = Service(url=f"http://127.0.0.1:{nobodys}")
            async with running(nobody, key, port) as gateway:
                await gateway.sign_in()
                response = await gateway.browser.get("/me")
        assert response.status_code == 502
        assert response.headers["Content-Type"] == "application/problem+json"
        assert response.json()["code"] == "upstream_unavailable"
