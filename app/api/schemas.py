"""What every request's model has in common."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

MOST_METADATA_BYTES = 64 * 1024

Uuid = Annotated[UUID, Field(strict=False)]
"""A UUID as JSON has it: text."""


class StrictModel(BaseModel):
    """A request's model: no other fields, and no conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class QueryModel(BaseModel):
    """A query string's model: text is converted, but nothing else is taken."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _can_be_looked_for(cls, given: dict[str, Any]) -> dict[str, Any]:
        if any("\0" in value for value in given.values() if isinstance(value, str)):
            raise ValueError("Text must not contain NUL.")
        return given


def _bounded(value: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(orjson.dumps(value))
    except TypeError:  # an integer beyond 64 bits
        size = len(repr(value))
    if size > MOST_METADATA_BYTES:
        raise ValueError(f"At most {MOST_METADATA_BYTES} bytes.")
    return value


Metadata = Annotated[dict[str, Any], AfterValidator(_bounded)]


def absent(value: object) -> object:
    """Accept a field of later work only while it would have no effect."""
    if value in (None, False, "", [], {}):
        return None
    raise ValueError("This is not available yet; leave it out.")


Unavailable = Annotated[Any, AfterValidator(absent)]
"""A field that LangGraph's clients may send, and that cannot do yet what it says."""
