"""``RateLimit`` and ``RateLimit-Policy``, as draft-ietf-httpapi-ratelimit-headers-10 has them."""

from __future__ import annotations

from typing import Any

from app.api.rate_headers import rate_headers
from tenancy.errors import LimitReached, RequestRateExceeded, TokenBudgetExhausted, TooManyThreads
from tenancy.scheduler.requests import Admission

LIMITS: dict[str, Any] = {"requests_per_minute": 60, "tokens_per_day": 1000, "threads": 5}


def headers(refusal: LimitReached | None = None, **fields: Any) -> tuple[str, str] | None:
    about = {"remaining": 58, "reset_seconds": 1.2, "retry_seconds": 0.0, **fields}
    given = rate_headers(Admission(**{"limits": LIMITS, "admitted": True, **about}), refusal)
    found = {name: value.decode() for name, value in given}
    return (found[b"ratelimit-policy"], found[b"ratelimit"]) if found else None


class TestAnAnswer:
    def test_says_how_many_requests_are_left_and_when_none_is_counted(self) -> None:
        assert headers() == (
            '"requests_per_minute";q=60;w=60',
            '"requests_per_minute";r=58;t=2',
        )

    def test_to_somebody_without_a_limit_says_nothing(self) -> None:
        assert headers(limits={"requests_per_minute": None}) is None


class TestARefusal:
    def test_for_the_rate_is_in_the_one_item(self) -> None:
        refusal = RequestRateExceeded("requests_per_minute", retry_seconds=0.7)
        said = headers(refusal, admitted=False, remaining=0, reset_seconds=60)
        assert said == ('"requests_per_minute";q=60;w=60', '"requests_per_minute";r=0;t=60')

    def test_for_another_limit_names_it_beside_the_rate(self) -> None:
        assert headers(TooManyThreads("threads")) == (
            '"requests_per_minute";q=60;w=60, "threads";q=5',
            '"requests_per_minute";r=58;t=2, "threads";r=0',
        )

    def test_for_a_budget_says_when_it_begins_anew(self) -> None:
        refusal = TokenBudgetExhausted("tokens_per_day", retry_seconds=3599.5)
        said = headers(refusal, limits={**LIMITS, "requests_per_minute": None})
        assert said == ('"tokens_per_day";q=1000;w=86400', '"tokens_per_day";r=0;t=3600')
