"""What retention dropped, and how far behind it is: numbers by kind, nothing about anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class RetentionMeter:
    """Counts by kind of data."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._dropped = Counter(
            "stoa_retention_rows_dropped",
            "Rows that this worker dropped since their time was over.",
            ("kind",),
            registry=registry,
        )
        self._overdue = Gauge(
            "stoa_retention_oldest_due_seconds",
            "For how long what was due for longest had been due, when last looked for; 0: nothing.",
            ("kind",),
            registry=registry,
        )
        self._failed = Counter(
            "stoa_retention_failures",
            "What was due and did not go, since something failed; the next look tries again.",
            ("kind",),
            registry=registry,
        )
        self._passed = Gauge(
            "stoa_retention_last_pass_timestamp_seconds",
            "When this worker had last looked after every kind (Unix time).",
            registry=registry,
        )

    def add_kind(self, kind: str) -> None:
        """Have a kind's numbers begin at zero, so that a first one is seen to grow."""
        self._dropped.labels(kind)
        self._failed.labels(kind)
        self._overdue.labels(kind)

    def found(self, kind: str, overdue_seconds: float) -> None:
        """The longest due of a kind had been due for so long."""
        self._overdue.labels(kind).set(overdue_seconds)

    def dropped(self, kind: str, rows: int) -> None:
        """So many rows are gone."""
        self._dropped.labels(kind).inc(rows)

    def failed(self, kind: str) -> None:
        """Something of a kind did not go, or the kind could not be looked after."""
        self._failed.labels(kind).inc()

    def passed(self) -> None:
        """Every kind was looked after, or tried to be."""
        self._passed.set_to_current_time()
