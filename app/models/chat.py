"""The chat model that graphs are given."""

from __future__ import annotations

from langchain_ollama import ChatOllama

from app.models.clients import NOWHERE, patch_clients


def build_chat_model(model: str, *, context: int, output: int) -> ChatOllama:
    """Return a chat model. Its calls are those of the run in whose context they are made.

    ``context`` and ``output`` are those of the model's pools; the calls are pinned to them anyway.
    """
    patch_clients()
    return ChatOllama(model=model, base_url=NOWHERE, num_ctx=context, num_predict=output)
