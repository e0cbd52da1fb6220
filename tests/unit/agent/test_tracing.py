"""What people say is sent to no tracing service, whatever the environment asks for."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

ASK_LANGSMITH = """
import json, app.agent
from langsmith.utils import tracing_is_enabled
print(json.dumps([tracing_is_enabled(), app.agent.TRACING_ASKED_FOR]))
"""


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("LANGSMITH_TRACING",),
        ("LANGCHAIN_TRACING_V2",),
        ("LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING"),
    ],
    ids=" ".join,
)
def test_no_run_is_traced_by_langsmith(names: tuple[str, ...]) -> None:
    environment = dict.fromkeys(names, "true") | {"PATH": os.environ["PATH"]}
    answer = subprocess.run(
        [sys.executable, "-c", ASK_LANGSMITH],
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    )
    assert json.loads(answer.stdout) == [False, list(names)]
