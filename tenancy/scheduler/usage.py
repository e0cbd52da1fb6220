"""What was used, by the hour or the day of UTC: tokens, calls, runs, times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from tenancy.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

BucketSize = Literal["hour", "day"]
MOST_BUCKETS = 1000
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
"""What lies beyond is nobody's usage."""

_READ = "SELECT * FROM tenant.read_usage($1, $2, $3, $4, $5)"


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used in a time. Seconds are those of seats, and of calls that waited for one."""

    prompt_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    runs: int = 0
    tool_calls: int = 0
    seat_seconds: float = 0.0
    wait_seconds: float = 0.0
    longest_wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class UsageBucket:
    """What was used from a moment on, for an hour or a day."""

    start: datetime
    usage: Usage


@dataclass(frozen=True, slots=True)
class UsageReport:
    """What was used in each bucket of a range, those without anything included."""

    last: datetime
    """The end of the last bucket."""
    buckets: tuple[UsageBucket, ...]

    @property
    def first(self) -> datetime:
        """The beginning of the first bucket."""
        return self.buckets[0].start

    @property
    def total(self) -> Usage:
        """The sum; of the longest waits, the longest."""
        return total_of(bucket.usage for bucket in self.buckets)


def total_of(usages: Iterable[Usage]) -> Usage:
    """The sum; of the longest waits, the longest."""
    each = list(usages)
    return Usage(
        prompt_tokens=sum(usage.prompt_tokens for usage in each),
        output_tokens=sum(usage.output_tokens for usage in each),
        calls=sum(usage.calls for usage in each),
        runs=sum(usage.runs for usage in each),
        tool_calls=sum(usage.tool_calls for usage in each),
        seat_seconds=sum(usage.seat_seconds for usage in each),
        wait_seconds=sum(usage.wait_seconds for usage in each),
        longest_wait_seconds=max((usage.longest_wait_seconds for usage in each), default=0.0),
    )


def check_times(begin: datetime | None, end: datetime | None) -> None:
    """Refuse times of which no range can be made.

    Raises:
        InvalidInput: says why.
    """
    for moment in (begin, end):
        if moment is not None and not EARLIEST <= moment <= LATEST:
            raise InvalidInput("`from` and `to` lie between the years 2000 and 2200.")
    if begin is not None and end is not None and begin >= end:
        raise InvalidInput("`from` is before `to`.")


async def read_usage(
    database: TenantDatabase,
    owner: Owner,
    begin: datetime | None,
    end: datetime | None,
    bucket: BucketSize,
) -> UsageReport:
    """A person's usage in the whole buckets that a time lies in: by default the 24 hours up to now.

    Raises:
        InvalidInput: there are none, or too many.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    check_times(begin, end)
    rows = await database.call(owner, _READ, begin, end, bucket, MOST_BUCKETS)
    if not rows:
        raise InvalidInput(
            f"`from` is before `to`, and at most {MOST_BUCKETS} buckets lie between them."
        )
    buckets = (UsageBucket(start, Usage(*used)) for _, start, *used in rows)
    return UsageReport(rows[0]["last"], tuple(buckets))
