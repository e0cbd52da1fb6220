"""When a model call is made again: never once a byte of its answer has been passed on."""

from __future__ import annotations

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential_jitter

from app.models.errors import (
    ModelBusy,
    ModelEmpty,
    ModelError,
    ModelMalformed,
    ModelMissing,
    ModelStreamCut,
    OllamaUnreachable,
)

RETRIES: dict[type[ModelError], int] = {
    OllamaUnreachable: 2,
    ModelMissing: 1,
    ModelBusy: 4,
    ModelEmpty: 3,
    ModelStreamCut: 1,
    ModelMalformed: 1,
}
"""How often each failure is tried again. Others would only fail again.

A server that cannot be reached, or that lacks the model, is out by then: the call waits for another
one with the same model, or is refused where there is none.
"""

LONGEST_WAIT_SECONDS = 5.0


def attempts(wait_seconds: float) -> AsyncRetrying:
    """Return the attempts of one call; the first wait is about ``wait_seconds`` long."""
    return AsyncRetrying(
        retry=retry_if_exception_type(tuple(RETRIES)),
        stop=_used_up,
        wait=wait_exponential_jitter(
            multiplier=wait_seconds, max=LONGEST_WAIT_SECONDS, jitter=wait_seconds
        ),
        reraise=True,
    )


def _used_up(state: RetryCallState) -> bool:
    failure = state.outcome.exception() if state.outcome else None
    return state.attempt_number > RETRIES.get(type(failure), 0)  # type: ignore[arg-type]
