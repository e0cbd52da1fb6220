"""How long to wait for the model servers."""

from __future__ import annotations

from dataclasses import dataclass

_WRITE_SECONDS = 30.0


@dataclass(frozen=True)
class ModelTiming:
    """How long a call may take where. Its seat is waited for apart from that."""

    connect_seconds: float = 5.0
    first_byte_seconds: float = 600.0
    """Covers a load of minutes, and the reading of a long prompt."""
    stall_seconds: float = 60.0
    """The longest silence in the middle of an answer."""
    retry_seconds: float = 0.25
    """About how long to wait before a failed call is made again for the first time."""

    def on_the_wire(self) -> dict[str, float | None]:
        """Time-outs of the HTTP connection; none for reading: only the reader knows what it is."""
        return {
            "connect": self.connect_seconds,
            "read": None,
            "write": _WRITE_SECONDS,
            "pool": None,
        }
