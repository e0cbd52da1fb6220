"""Ollama's chat request, and what it is to llama.cpp."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Part = dict[str, object]
"""A JSON object of llama.cpp's."""


class Message(BaseModel):
    """One message of the conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    images: list[str] | None = None

    def for_llama(self) -> dict[str, str]:
        """Return the message with what this model understands of it."""
        return {"role": self.role, "content": self.content}


class Options(BaseModel):
    """The options that mean something here, with Ollama's defaults. Others are ignored."""

    model_config = ConfigDict(extra="ignore")

    num_predict: int | None = None
    temperature: float = Field(default=0.2, ge=0)
    """Lower than Ollama's 0.8, as this model's own parameters would say: it is very small."""
    seed: int | None = None
    stop: str | list[str] = []
    top_k: int = 40
    top_p: float = 0.9
    min_p: float = 0.0
    repeat_penalty: float = 1.1

    def for_llama(self) -> Part:
        """Return the same in llama.cpp's names."""
        values = self.model_dump(exclude={"num_predict"}, exclude_none=True)
        values["stop"] = [self.stop] if isinstance(self.stop, str) else self.stop
        if self.num_predict is not None and self.num_predict > 0:
            values["max_tokens"] = self.num_predict
        return values


class ShowRequest(BaseModel):
    """The body of ``/api/show``."""

    model_config = ConfigDict(extra="ignore")

    model: str


class ChatRequest(BaseModel):
    """The body of ``/api/chat``."""

    model_config = ConfigDict(extra="ignore")

    model: str
    messages: list[Message] = []
    stream: bool = True
    options: Options = Options()
    tools: list[object] | None = None
    think: bool | str | None = None
    format: str | dict[str, object] | None = None

    def refusal(self) -> str | None:
        """Return in Ollama's words what this model cannot do, if the request asks for it."""
        if self.tools:
            return f'"{self.model}" does not support tools'
        if self.think:
            return f'"{self.model}" does not support thinking'
        if any(message.images for message in self.messages):
            return "this model is missing data required for image input"
        return None

    def for_llama(self, messages: list[Message]) -> Part:
        """Return the request for these of its messages."""
        request: Part = {
            "messages": [message.for_llama() for message in messages],
            "stream": True,
            **self.options.for_llama(),
        }
        if isinstance(self.format, dict):
            schema = {"schema": self.format}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self.format == "json":
            request["response_format"] = {"type": "json_object"}
        return request
