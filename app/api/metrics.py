"""What a web process's answers come to: by route and status, nobody's paths or ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


class MeasuredAnswers:
    """Counts answers by how long they took to begin: a stream lasts as long as it is read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "stoa_http_request_seconds",
            "How long requests waited for their answer to begin; 499: their clients went before.",
            ("method", "route", "status"),
            buckets=_SECONDS,
            registry=registry,
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """An answer began."""
        self._seconds.labels(method, route, str(status)).observe(seconds)
