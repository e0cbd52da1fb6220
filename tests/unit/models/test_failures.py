"""What counts as a failure of the model, and what does not."""

from __future__ import annotations

import httpx
import ollama
import pytest

from app.models.errors import ModelBusy, ModelError, ModelMissing, ModelStreamCut
from app.models.failures import describe_model_failure, error_of_response


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause  # noqa: TRY301 - to give it a traceback
    except BaseException as caught:  # noqa: BLE001
        return caught


class TestDescribing:
    def test_a_cause_is_found_however_deep(self) -> None:
        inner = raised(RuntimeError("node failed"), ModelStreamCut())
        assert isinstance(describe_model_failure(raised(ValueError(), inner)), ModelStreamCut)

    def test_a_group_is_looked_into(self) -> None:
        group = ExceptionGroup("tasks", [KeyError("x"), ModelBusy()])
        assert isinstance(describe_model_failure(group), ModelBusy)

    def test_a_context_that_was_suppressed_is_not_looked_at(self) -> None:
        error = RuntimeError("of its own")
        error.__context__ = ModelBusy()
        error.__suppress_context__ = True
        assert describe_model_failure(error) is None

    def test_causes_in_a_circle_end(self) -> None:
        first, second = RuntimeError("1"), RuntimeError("2")
        first.__cause__, second.__cause__ = second, first
        assert describe_model_failure(first) is None

    def test_the_clients_own_error_is_told_by_its_status(self) -> None:
        error = ollama.ResponseError("model 'x' not found", 404)
        assert isinstance(describe_model_failure(error), ModelMissing)

    @pytest.mark.parametrize(
        "error", [httpx.ConnectError("refused"), ConnectionError("lost"), ValueError("no JSON")]
    )
    def test_the_same_errors_from_elsewhere_are_not_the_models(self, error: Exception) -> None:
        assert describe_model_failure(raised(error)) is None


class TestCodes:
    def test_every_error_has_a_code_and_a_message_of_its_own(self) -> None:
        tree: list[type[ModelError]] = [ModelError, *_below(ModelError)]
        assert len({each.code for each in tree}) == len(tree)
        assert len({str(each()) for each in tree}) == len(tree)

    def test_a_status_nobody_planned_for_is_a_failure(self) -> None:
        assert error_of_response(418, "teapot").code == "model_failed"


def _below(cls: type[ModelError]) -> list[type[ModelError]]:
    children = cls.__subclasses__()
    return children + [deeper for child in children for deeper in _below(child)]
