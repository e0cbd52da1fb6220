"""Answers that a browser keeps as a file."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

from app.api.live import LiveResponse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from app.api.services import Services
    from tenancy.principal import Principal

MOST_SECONDS = 6 * 3600
"""How long a download may take."""


def download(
    services: Services,
    principal: Principal,
    content: AsyncGenerator[bytes, None],
    *,
    name: str,
    media_type: str,
) -> LiveResponse:
    """Answer with a file that is made while it is sent; one that is cut off breaks the connection.

    Who may have it was decided when they asked: a download cannot go on under the next assertion,
    and gateways' last for minutes. It ends early when the person leaves, as every stream of theirs.
    """
    return LiveResponse(
        content,
        media_type=media_type,
        beat=b"",  # in silence nothing: whatever was sent would be in the file
        expires_at=datetime.now(UTC) + timedelta(seconds=MOST_SECONDS),
        closing=services.streams.closing_for(principal.user_id),
        whole=True,
        headers={"Content-Disposition": attachment(name), "X-Accel-Buffering": "no"},
    )


def attachment(name: str) -> str:
    """The header's value (RFC 6266): the name, and for old clients one like it in ASCII. Pure."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = "".join(each for each in plain if each.isprintable() and each not in '"\\%')
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
