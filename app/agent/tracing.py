"""No trace of a run goes to LangSmith: it would hold all that a person and the model said.

LangChain sends one wherever a variable of the environment asks for it, whoever set that for which
program. Nobody can ask for it here.
"""

from __future__ import annotations

import os

import structlog

_NAMES = tuple(
    f"{namespace}_{name}"
    for namespace in ("LANGSMITH", "LANGCHAIN")
    for name in ("TRACING_V2", "TRACING")
)
_FIRST = _NAMES[0]
"""What LangSmith reads first; where it says no, the others are not asked."""


def _switch_off() -> tuple[str, ...]:
    """Say no in the variable that counts; return those in which somebody had said yes."""
    asked = tuple(name for name in _NAMES if os.environ.get(name, "").strip().lower() == "true")
    os.environ[_FIRST] = "false"
    return asked


TRACING_ASKED_FOR = _switch_off()
"""Variables in which somebody wanted runs to be traced."""


def say_what_was_asked() -> None:
    """Tell the operator that what they asked for is not done."""
    if TRACING_ASKED_FOR:
        structlog.get_logger(__name__).warning(
            "runs are traced nowhere: a trace holds what people say", ignored=TRACING_ASKED_FOR
        )
