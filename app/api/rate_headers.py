"""``RateLimit`` and ``RateLimit-Policy``: draft-ietf-httpapi-ratelimit-headers-10, on each answer.

Also what the draft says of a refusal: the problem type ``quota-exceeded``, whose
``violated-policies`` are named as in the header.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tenancy.scheduler.requests import WINDOW_SECONDS

if TYPE_CHECKING:
    from tenancy.errors import LimitReached
    from tenancy.scheduler.requests import Admission

QUOTA_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded"
REQUESTS = "requests_per_minute"
_WINDOWS = {
    "tokens_per_day": 86_400,
    "tokens_per_month": 31 * 86_400,
    "rule_changes_per_hour": 3600,
    "exports_per_hour": 3600,
    "returns_per_day": 86_400,
}
_EVERYBODYS = {"rule_changes_per_hour": 20, "exports_per_hour": 10, "returns_per_day": 10}
"""Limits that nobody sets: the database holds them itself."""


def rate_headers(
    admission: Admission, refusal: LimitReached | None = None
) -> list[tuple[bytes, bytes]]:
    """The header lines for an answer to a request that was counted."""
    policies: list[str] = []
    standings: list[str] = []
    if admission.quota is not None:
        policies.append(f'"{REQUESTS}";q={admission.quota};w={WINDOW_SECONDS}')
        left = math.ceil(admission.reset_seconds or 0)
        standings.append(f'"{REQUESTS}";r={admission.remaining};t={left}')
    if refusal is not None and refusal.limit != REQUESTS:
        policies.append(_policy(refusal.limit, admission))
        standings.append(_standing(refusal))
    if not policies:
        return []
    return [
        (b"ratelimit-policy", ", ".join(policies).encode()),
        (b"ratelimit", ", ".join(standings).encode()),
    ]


def _policy(limit: str, admission: Admission) -> str:
    quota = admission.limits.get(limit) or _EVERYBODYS.get(limit, 0)
    window = f";w={_WINDOWS[limit]}" if limit in _WINDOWS else ""
    return f'"{limit}";q={int(quota)}{window}'


def _standing(refusal: LimitReached) -> str:
    seconds = refusal.retry_seconds
    return f'"{refusal.limit}";r=0' + ("" if seconds is None else f";t={math.ceil(seconds)}")
