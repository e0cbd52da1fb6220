"""What a model call asks for, on Ollama's wire. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from app.models.errors import ModelMalformed, ModelUnsupported
from app.sharing import full_name

_KINDS: dict[str, Literal["answer", "embedding"]] = {
    "/api/chat": "answer",
    "/api/generate": "answer",
    "/api/embed": "embedding",
    "/api/embeddings": "embedding",
}
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A request that takes a seat."""

    path: str
    kind: Literal["answer", "embedding"]
    model: str
    """The full name."""
    body: dict[str, Any]

    def pinned(self, context: int, output: int) -> bytes:
        """The body with what is fixed in a pool: the window, and an end for every answer."""
        options = dict(self.body.get("options") or {})
        wanted = options.get("num_predict")
        bounded = isinstance(wanted, int) and 0 < wanted <= output
        options |= {"num_ctx": context, "num_predict": wanted if bounded else output}
        return json.dumps({**self.body, "options": options}).encode()

    def rough_prompt_tokens(self, context: int) -> int:
        """About how many tokens were read, where the server did not come to count them."""
        said = [self.body.get(name) for name in ("messages", "prompt", "system", "input")]
        return min(context, len(json.dumps(said)) // _CHARACTERS_PER_TOKEN)


def read_call(path: str, content: bytes) -> ModelCall:
    """Understand a request.

    Raises:
        ModelUnsupported: it is none that a graph may make.
        ModelMalformed: it is not what it should be.
    """
    kind = _KINDS.get(path)
    if kind is None:
        raise ModelUnsupported("Only chat, generate and embed may be asked of the model server.")
    try:
        body = json.loads(content)
        model = body["model"]
    except (ValueError, KeyError, TypeError):
        raise ModelMalformed from None
    if not isinstance(model, str) or not model:
        raise ModelMalformed
    options = body.get("options")
    if options is not None and not isinstance(options, dict):
        raise ModelMalformed
    return ModelCall(path, kind, full_name(model), body)
