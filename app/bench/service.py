"""The service under measurement: real web and worker processes, and a client that streams."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING
from uuid import uuid4

import httpcore
import orjson
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from app.bench.graphs.three_steps import Steps
from app.bench.issuer import AUDIENCE, ISSUER, BenchIssuer
from app.bench.load import Timing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

GRAPHS = Path(__file__).parent / "graphs" / "langgraph.json"
USERS = 25
"""Enough that the per-user cap of 4 runs does not hold 50 in flight back."""
_STARTUP_SECONDS = 180


@dataclass(frozen=True, slots=True)
class BenchService:
    """A web process and a worker, and people to use them."""

    pool: httpcore.AsyncConnectionPool
    origin: str
    issuer: BenchIssuer
    web_pid: int
    worker_pid: int

    async def sign_up(self, people: int) -> list[dict[str, str]]:
        """People as they are after their first request: what each sends along."""
        headers = [self.issuer.headers(f"person-{number}") for number in range(people)]
        for each in headers:
            await _get(self.pool, f"{self.origin}/me", each)
        return headers


@asynccontextmanager
async def open_processes(
    dsns: Mapping[str, str],
    settings: Mapping[str, str] | None = None,
    *,
    program: str = "app.cli",
) -> AsyncIterator[BenchService]:
    """Start web and worker on a migrated database, with more settings if given.

    ``program`` is the module that is started as ``stoa``.
    """
    issuer = BenchIssuer()
    async with AsyncExitStack() as stack:
        jwks_url = stack.enter_context(issuer.published())
        environment = {**dsns, **_settings(jwks_url), **(settings or {})}
        port = free_port()
        commands = (["web", "--port", str(port)], ["worker"])
        web, worker = [
            await stack.enter_async_context(_process([program, *command], environment))
            for command in commands
        ]
        origin = f"http://127.0.0.1:{port}"
        pool = await stack.enter_async_context(
            httpcore.AsyncConnectionPool(max_connections=None, max_keepalive_connections=200)
        )
        await _until_ready(pool, origin)
        yield BenchService(pool, origin, issuer, web.pid, worker.pid)


@asynccontextmanager
async def open_service(
    dsns: Mapping[str, str], graph_input: Steps
) -> AsyncIterator[Callable[[int], Awaitable[Timing]]]:
    """Start web and worker on a migrated database; yield what streams one run to its end.

    Each run is of one of 25 people and creates its own thread, as the floor's does.
    """
    async with open_processes(dsns) as service:
        people = await service.sign_up(USERS)
        body = orjson.dumps(
            {
                "assistant_id": "three_steps",
                "input": graph_input,
                "stream_mode": ["values"],
                "if_not_exists": "create",
            }
        )

        async def run_once(index: int) -> Timing:
            return await stream_run(service.pool, service.origin, people[index % USERS], body)

        yield run_once


async def stream_run(
    pool: httpcore.AsyncConnectionPool, origin: str, headers: dict[str, str], body: bytes
) -> Timing:
    """Create a thread, and stream one run there to its end."""
    started = time.perf_counter()
    first, tail = 0.0, b""
    request = pool.stream(
        "POST",
        f"{origin}/threads/{uuid4()}/runs/stream",
        headers=lines({**headers, **json_headers(body)}),
        content=body,
    )
    async with request as response:
        async for chunk in response.aiter_stream():
            first = first or time.perf_counter() - started
            tail = (tail + chunk)[-400:]
    if b"event: end" not in tail or b'"success"' not in tail:
        raise RuntimeError("a run did not succeed")
    return Timing(first, time.perf_counter() - started)


def _settings(jwks_url: str) -> dict[str, str]:
    return {
        "STOA_IDENTITY_ISSUER": ISSUER,
        "STOA_IDENTITY_AUDIENCE": AUDIENCE,
        "STOA_IDENTITY_JWKS_URL": jwks_url,
        "STOA_GRAPHS": str(GRAPHS),
        "STOA_MAX_STREAMS_PER_USER": "100",
        "STOA_REQUESTS_PER_MINUTE": "100000",
        "STOA_LOG_FORMAT": "json",
    }


@asynccontextmanager
async def _process(
    command: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """One of the service's processes; its log is of interest only where it does not start."""
    log = TemporaryFile()  # noqa: SIM115 - closed when the process has ended
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("STOA_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", *command),
        env={**inherited, **environment},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=log,
    )
    try:
        yield process
    except httpcore.ConnectError:
        log.seek(0)
        raise RuntimeError(f"{command[1]} did not start:\n{log.read().decode()}") from None
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()
        log.close()


def lines(headers: Mapping[str, str]) -> list[tuple[bytes | str, bytes | str]]:
    """Headers as the client takes them."""
    return list(headers.items())


def json_headers(body: bytes) -> dict[str, str]:
    """What a JSON body needs beside it."""
    return {"Content-Type": "application/json", "Content-Length": str(len(body))}


async def _get(
    pool: httpcore.AsyncConnectionPool, url: str, headers: Mapping[str, str] | None = None
) -> None:
    response = await pool.request("GET", url, headers=lines(headers or {}))
    if response.status != HTTPStatus.OK:
        raise httpcore.ConnectError(f"{url} answers {response.status}")


async def _until_ready(pool: httpcore.AsyncConnectionPool, origin: str) -> None:
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(httpcore.ConnectError),
        stop=stop_after_delay(_STARTUP_SECONDS),
        wait=wait_fixed(0.1),
        reraise=True,  # what did not start has said why
    ):
        with attempt:
            await _get(pool, f"{origin}/ready")


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
