"""The OpenAPI document holds: whatever is sent, statuses and shapes are those it names."""

from __future__ import annotations

import asyncio
import os
import sys

from tests.support.service import RunningService

EXAMPLES = int(os.environ.get("STOA_TEST_SCHEMATHESIS_EXAMPLES", "3"))


class TestTheDocument:
    async def test_is_kept_whatever_is_sent(self, service: RunningService) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "schemathesis.cli",
            "run",
            f"{service.url}/openapi.json",
            f"--max-examples={EXAMPLES}",
            "--exclude-operation-id=join_thread_stream",  # their answers have no end
            "--exclude-operation-id=follow_own_events",
            "--checks=not_a_server_error,status_code_conformance,content_type_conformance,"
            "response_schema_conformance",
            f"--header=Authorization: Bearer {service.issuer.assertion('schemathesis')}",
            "--no-color",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()[-8000:]

    async def test_names_every_route(self, service: RunningService) -> None:
        document = (await service.client(None).get("/openapi.json")).json()
        operations = [each for path in document["paths"].values() for each in path.values()]
        ids = [operation["operationId"] for operation in operations]
        assert len(ids) == len(set(ids)) >= 29
        assert all("500" in operation["responses"] for operation in operations)
