"""Ollama's routes, as far as the service uses them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.dev.model.answers import Line, Refused, answer_lines, encode, joined
from app.dev.model.requests import ChatRequest, ShowRequest
from app.dev.model.weights import SIZE

if TYPE_CHECKING:
    from app.dev.model.engine import Engine

VERSION = "0.33.0"
_DEFAULT_TAG = ":latest"
_NDJSON = [(b"content-type", b"application/x-ndjson")]


class LocalModel:
    """Answers for one model by one name."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name
        self.asgi = Starlette(
            routes=[
                Route("/", _home),
                Route("/api/version", _version),
                Route("/api/tags", self._models),
                Route("/api/ps", self._models),
                Route("/api/show", self._show, methods=["POST"]),
                Route("/api/chat", self._chat, methods=["POST"]),
            ]
        )

    async def _models(self, request: Request) -> Response:  # noqa: ARG002
        return JSONResponse({"models": [_description(self._name, self._engine.context)]})

    async def _show(self, request: Request) -> Response:
        try:
            asked = ShowRequest.model_validate_json(await request.body()).model
        except ValidationError as error:
            return _refused(_first_fault(error))
        if not self._is_known(asked):
            return _unknown(asked)
        return JSONResponse(_details(self._engine.context))

    async def _chat(self, request: Request) -> Response:
        try:
            body = ChatRequest.model_validate_json(await request.body())
        except ValidationError as error:
            return _refused(_first_fault(error))
        if not self._is_known(body.model):
            return _unknown(body.model)
        if refusal := body.refusal():
            return _refused(refusal)
        return Answer(answer_lines(self._engine, body), stream=body.stream)

    def _is_known(self, asked: str) -> bool:
        return asked.removesuffix(_DEFAULT_TAG) == self._name


class Answer(Response):
    """Sends an answer, and stops making it when the client goes away."""

    def __init__(self, lines: AsyncGenerator[Line], *, stream: bool) -> None:
        super().__init__()
        self._lines = lines
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Race the answer against the client's disconnect."""
        answering = asyncio.create_task(self._answer(scope, receive, send))
        leaving = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            for task in (answering, leaving):
                task.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._lines) as lines:
            try:
                first = await anext(lines)
            except Refused as refusal:
                await _refused(str(refusal))(scope, receive, send)
                return
            if self._stream and "error" not in first:
                await _send_lines(send, first, lines)
                return
            whole = [first, *[line async for line in lines]]
            failed = "error" in whole[-1]
            response = JSONResponse(whole[-1], 500) if failed else JSONResponse(joined(whole))
            await response(scope, receive, send)


async def _home(request: Request) -> Response:  # noqa: ARG001
    return PlainTextResponse("Ollama is running")


async def _version(request: Request) -> Response:  # noqa: ARG001
    return JSONResponse({"version": VERSION})


async def _send_lines(send: Send, first: Line, rest: AsyncGenerator[Line]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _NDJSON})
    await send({"type": "http.response.body", "body": encode(first), "more_body": True})
    async for line in rest:
        await send({"type": "http.response.body", "body": encode(line), "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_input=False, include_url=False)[0]
    return f"invalid request: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"


def _refused(text: str) -> JSONResponse:
    return JSONResponse({"error": text}, 400)


def _unknown(model: str) -> JSONResponse:
    return JSONResponse({"error": f"model '{model}' not found"}, 404)


def _description(model: str, context: int) -> Line:
    name = f"{model}{_DEFAULT_TAG}"
    digest = hashlib.sha256(name.encode()).hexdigest()
    return {
        "name": name,
        "model": name,
        "size": SIZE,
        "digest": digest,
        "details": _details(context)["details"],
        "context_length": context,
    }


def _details(context: int) -> Line:
    return {
        "details": {
            "format": "gguf",
            "family": "llama",
            "parameter_size": "134.52M",
            "quantization_level": "Q4_1",
        },
        "model_info": {"general.architecture": "llama", "llama.context_length": context},
        "capabilities": ["completion"],
    }
