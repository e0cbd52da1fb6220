"""What a model call asks for, on Ollama's wire. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from app.models.errors import ModelUnsupported
from app.sharing import full_name

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["answer", "embedding"]
_KINDS: dict[str, Kind] = {
    "/api/chat": "answer",
    "/api/generate": "answer",
    "/api/embed": "embedding",
    "/api/embeddings": "embedding",
}
_CHARACTERS_PER_TOKEN = 4
_OF_THE_RUNNER = frozenset(
    {
        *("num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "numa"),
        *("use_mmap", "use_mlock", "low_vram", "f16_kv", "logits_all", "vocab_only"),
    }
)
"""Options with which a model is loaded: another value loads it anew, for everybody."""
_MOST_TEXTS = 16
_MOST_TOKENS = 2048
"""Of one call for embeddings: with a seat each, nobody waits for a whole library."""


def require_model_call(method: str, path: str) -> Kind:
    """Tell which kind of call a request is.

    Raises:
        ModelUnsupported: it is none that a graph may make.
    """
    kind = _KINDS.get(path)
    if kind is None or method != "POST":
        raise ModelUnsupported(
            "Only chat, generate and embed may be asked of the model server, not list, show, pull"
            " or others. A chat model is built without `validate_model_on_init`."
        )
    return kind


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A request that takes a seat."""

    path: str
    kind: Kind
    model: str
    """The full name."""
    body: dict[str, Any]

    @property
    def is_streamed(self) -> bool:
        """Whether the answer is wanted line by line."""
        return self.kind == "answer" and self.body.get("stream") is not False

    def pinned(self, context: int, output: int) -> bytes:
        """The body with what is fixed in a pool: how the model is loaded, and an end."""
        given = self.body.get("options") or {}
        options = {name: given[name] for name in given if name not in _OF_THE_RUNNER}
        options |= {"num_ctx": context, "num_predict": _bounded(given.get("num_predict"), output)}
        body = {name: self.body[name] for name in self.body if name != "keep_alive"}
        if self.kind == "answer":
            body["stream"] = True
        return json.dumps({**body, "options": options}).encode()

    def pieces(self) -> Iterator[ModelCall]:
        """The calls that are made for it: one, but for many texts to embed."""
        texts = self.body.get("input")
        if not isinstance(texts, list) or len(texts) < 2:  # noqa: PLR2004 - nothing to divide
            yield self
            return
        piece: list[Any] = []
        for text in texts:
            if piece and (len(piece) == _MOST_TEXTS or _tokens([*piece, text]) > _MOST_TOKENS):
                yield replace(self, body={**self.body, "input": piece})
                piece = []
            piece.append(text)
        yield replace(self, body={**self.body, "input": piece})

    def rough_prompt_tokens(self, context: int) -> int:
        """About how many tokens were read, where the server did not come to count them."""
        names = ("messages", "tools", "prompt", "suffix", "system", "input")
        return min(context, _tokens([self.body[name] for name in names if name in self.body]))


def read_call(path: str, content: bytes) -> ModelCall:
    """Understand a request.

    Raises:
        ModelUnsupported: it is none that a graph may make, or not what it should be.
    """
    kind = require_model_call("POST", path)
    try:
        body = json.loads(content)
        model = body["model"]
        options = body.get("options")
    except (ValueError, KeyError, TypeError, RecursionError, AttributeError):
        raise ModelUnsupported from None
    if not isinstance(model, str) or not model or not isinstance(options, dict | None):
        raise ModelUnsupported
    return ModelCall(path, kind, full_name(model), body)


def _bounded(wanted: object, output: int) -> int:
    return wanted if type(wanted) is int and 0 < wanted <= output else output


def _tokens(said: object) -> int:
    return -(-len(json.dumps(said)) // _CHARACTERS_PER_TOKEN)
