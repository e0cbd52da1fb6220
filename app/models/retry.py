"""When a model call is made again: never once a line of its answer has been passed on."""

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
    OllamaUnreachable: 5,
    ModelMissing: 5,
    ModelBusy: 4,
    ModelEmpty: 3,
    ModelStreamCut: 1,
    ModelMalformed: 1,
}
"""How often a call is made again, in all, that ended like this. Others would only fail again."""
_POOL_IS_OUT = (OllamaUnreachable, ModelMissing)
"""What takes a pool out at once: the next seat is another pool's, or waited for, or refused."""

LONGEST_WAIT_SECONDS = 5.0
BUDGET_SECONDS = 60.0
"""How long after its first failure a call may still be made again. Its place in the queue, which
it may have waited for much longer before that, is no part of it."""


def attempts(wait_seconds: float) -> AsyncRetrying:
    """Return the attempts of one call; the first wait is about ``wait_seconds`` long."""
    backoff = wait_exponential_jitter(
        multiplier=wait_seconds, max=LONGEST_WAIT_SECONDS, jitter=wait_seconds
    )

    def wait(state: RetryCallState) -> float:
        return 0 if isinstance(_failure(state), _POOL_IS_OUT) else backoff(state)

    return AsyncRetrying(
        retry=retry_if_exception_type(tuple(RETRIES)), stop=_Budget(), wait=wait, reraise=True
    )


class _Budget:
    """What one call may spend on being made again."""

    def __init__(self) -> None:
        self._first_failed_at: float | None = None

    def __call__(self, state: RetryCallState) -> bool:
        now = state.outcome_timestamp or 0.0
        if self._first_failed_at is None:
            self._first_failed_at = now
        most = RETRIES.get(type(_failure(state)), 0)  # type: ignore[arg-type]
        return state.attempt_number > most or now - self._first_failed_at > BUDGET_SECONDS


def _failure(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None
