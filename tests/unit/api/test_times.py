"""Times that clients send: none is of a zone that has to be guessed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, get_args

import pytest
from pydantic import BaseModel

import app.api.application  # noqa: F401 - has every route's models
from app.api.schemas import QueryModel, StrictModel


def models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """All that is made from a model."""
    for each in base.__subclasses__():
        yield each
        yield from models(each)


def parts(annotation: Any) -> Iterator[Any]:
    """A type and all that it is made of."""
    yield annotation
    for each in get_args(annotation):
        yield from parts(each)


class TestWhatClientsSend:
    @pytest.mark.parametrize("base", [QueryModel, StrictModel])
    def test_has_no_time_without_a_zone(self, base: type[BaseModel]) -> None:
        found = [*models(base)]
        assert found
        assert [
            f"{model.__name__}.{name}"
            for model in found
            for name, said in model.model_fields.items()
            if datetime in parts(said.annotation)
        ] == []
