"""The models that the built-in agent may speak with, and which of them a run has chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.agent.toolless import ToolOffer
from app.models.chat import build_chat_model
from app.models.errors import ModelMissing
from app.sharing import chat_models, full_name
from tenancy.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_ollama import ChatOllama

    from app.settings import Settings
    from app.sharing import ChatModel

MODEL = "model"
"""The key of a run's ``config.configurable`` that names what it speaks with."""


class ModelUnknown(InvalidInput):
    """There is no such model to choose."""

    code = "model_unknown"
    message = "There is no such model: `/models` lists those that there are."


@dataclass(frozen=True, slots=True)
class Speaker:
    """A model to speak with."""

    chat: ChatOllama
    prompt_tokens: int
    """What its window leaves for the prompt."""
    offer: ToolOffer


class Speakers:
    """One of each model, for all runs of a process.

    Raises:
        SettingsError: the pools contradict each other.
    """

    def __init__(self, settings: Settings) -> None:
        self._models = {each.model: each for each in chat_models(settings)}
        self._default = full_name(settings.model)
        # By the name that the settings have, which is what people read in messages.
        called = {self._default: settings.model}
        self._speakers = {
            name: speaker_of(each, called.get(name, name)) for name, each in self._models.items()
        }

    @property
    def default(self) -> Speaker:
        """That of runs which choose none."""
        return self._speakers[self._default]

    def of(self, chosen: str | None) -> Speaker:
        """What a run that has chosen this model speaks with.

        Raises:
            ModelMissing: there is no such model any more.
        """
        return self._speakers[self.model(chosen).model]

    def model(self, chosen: str | None) -> ChatModel:
        """What there is to know of it.

        Raises:
            ModelMissing: there is no such model any more.
        """
        try:
            return self._models[chosen or self._default]
        except KeyError:
            raise ModelMissing from None


def speaker_of(model: ChatModel, called: str) -> Speaker:
    """A model to speak with. Its calls take seats of its own pools, whoever makes them."""
    chat = build_chat_model(called, context=model.context, output=model.output)
    return Speaker(chat, model.prompt_tokens, ToolOffer(called))


def check_model(given: object, settings: Settings) -> str:
    """The full name of a model that was asked for, with or without its tag.

    Raises:
        ModelUnknown: there is none to choose of that name.
    """
    if isinstance(given, str):
        name = full_name(given)
        if any(each.model == name for each in chat_models(settings)):
            return name
    raise ModelUnknown


def chosen_model(config: Mapping[str, Any]) -> str | None:
    """What the configuration of an accepted run of the built-in agent has chosen; None: nothing."""
    chosen: str | None = config.get("configurable", {}).get(MODEL)
    return chosen
