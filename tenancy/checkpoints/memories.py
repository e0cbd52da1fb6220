"""What a memory is, whoever writes it: an item of one namespace of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from tenancy.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MEMORIES = ("memories",)
"""The namespace, in each person's scope."""
MOST_CHARACTERS = 2000
"""Of one memory: a few sentences. More than that is a document."""


def require_memory(key: str, value: Mapping[str, Any]) -> None:
    """Make sure that an item of the memories' namespace is one.

    Raises:
        InvalidInput: it is not; the message says what one looks like.
    """
    content = value.get("content")
    is_text = isinstance(content, str) and is_memory(content)
    if set(value) != {"content"} or not is_text or not _is_uuid(key):
        raise InvalidInput(
            'In the namespace ["memories"] an item is {"content": "…"} under a UUID in lower case,'
            f" with a text of at most {MOST_CHARACTERS} characters."
        )


def is_memory(content: str) -> bool:
    """Whether a text can be one."""
    return bool(content.strip()) and len(content) <= MOST_CHARACTERS


def _is_uuid(key: str) -> bool:
    try:
        return str(UUID(key)) == key
    except ValueError:
        return False
