"""The OpenAPI document holds: whatever is sent, statuses and shapes are those it names."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.support.service import RunningService

EVERYDAY = (f"--config-file={Path(__file__).parent / 'everyday.toml'}",)
CASES = ("--phases=examples,coverage", "--generation-deterministic")
"""Every case that the document itself gives, the same each time."""
CASES_AT_NIGHT = ("--phases=examples,coverage,fuzzing,stateful", "--max-examples=10")


class TestTheDocument:
    @pytest.mark.timeout(1800)
    async def test_is_kept_whatever_is_sent(self, service: RunningService, nightly: bool) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "schemathesis.cli"),
            *(() if nightly else EVERYDAY),
            *("run", f"{service.url}/openapi.json"),
            *(CASES_AT_NIGHT if nightly else CASES),
            "--exclude-operation-id=join_thread_stream",  # their answers have no end
            "--exclude-operation-id=follow_own_events",
            "--exclude-operation-id=leave",  # whoever has left is refused everywhere
            "--request-timeout=120",
            "--checks=not_a_server_error,status_code_conformance,content_type_conformance,"
            "response_schema_conformance",
            f"--header=Authorization: Bearer {service.issuer.assertion('schemathesis')}",
            "--no-color",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        # What it has put off would be due in the middle of another test.
        sent = service.client("schemathesis")
        assert (await sent.post("/runs/cancel", json={"status": "all"})).status_code == 204
        assert process.returncode == 0, said.decode()[-8000:]

    async def test_names_every_route(self, service: RunningService) -> None:
        document = (await service.client(None).get("/openapi.json")).json()
        operations = [each for path in document["paths"].values() for each in path.values()]
        ids = [operation["operationId"] for operation in operations]
        assert len(ids) == len(set(ids)) >= 29
        assert all("500" in operation["responses"] for operation in operations)
