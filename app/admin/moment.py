"""Times as an operator reads them: of UTC, whatever the database's own zone is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator

Moment = Annotated[datetime, AfterValidator(lambda at: at.astimezone(UTC))]


def shown(value: object) -> str:
    """A value in a table."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, float):
        return f"{value:,.1f}" if value % 1 else f"{value:,.0f}"
    return str(value)
