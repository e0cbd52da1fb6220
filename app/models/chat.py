"""The chat model that graphs are given."""

from __future__ import annotations

import httpx
from langchain_ollama import ChatOllama

from app.models.connection import build_timeout
from app.models.settings import ModelSettings
from app.models.transport import ModelTransport


def build_chat_model(settings: ModelSettings) -> ChatOllama:
    """Return the chat model. Build it once per process, and close it with ``close_chat_model``."""
    return ChatOllama(
        model=settings.model,
        base_url=settings.url,
        num_ctx=settings.context,
        num_predict=settings.output,
        client_kwargs={"trust_env": False, "follow_redirects": False},
        async_client_kwargs={
            "transport": ModelTransport(settings),
            "timeout": build_timeout(settings.connect_seconds),
        },
        sync_client_kwargs={"transport": NoBlockingCalls()},
    )


async def close_chat_model(model: ChatOllama) -> None:
    """Close the model's connections."""
    transport = (model.async_client_kwargs or {}).get("transport")
    if isinstance(transport, ModelTransport):
        await transport.aclose()


class NoBlockingCalls(httpx.BaseTransport):
    """Refuses synchronous calls: one would outlive the cancelling of its run."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:  # noqa: ARG002
        """Refuse.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("Call the model with `await model.ainvoke(…)` or `model.astream(…)`")
