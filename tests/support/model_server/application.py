"""The HTTP side of the scripted model server: Ollama's routes."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tests.support.model_server import control, lines
from tests.support.model_server.generation import Cut, Generation, Malformed, Reset, prompt_size
from tests.support.model_server.journal import Journal, RecordedRequest
from tests.support.model_server.lines import Kind, Line
from tests.support.model_server.runner import Runner
from tests.support.model_server.script import ECHO, Body, Script, Scripter

VERSION = "0.33.0"
EMBEDDING_SIZE = 8


@dataclass
class Plan:
    """What the server answers: the queue first, then the default."""

    models: tuple[str, ...] = ("smollm2",)
    capabilities: tuple[str, ...] = ("completion", "tools", "thinking")
    made_for: int = 131_072
    """The longest window, in tokens."""
    default: Script | Scripter = ECHO
    queue: deque[Script] = field(default_factory=deque)

    def next_for(self, body: Body) -> Script:
        """Return the script of the next request."""
        if self.queue:
            return self.queue.popleft()
        return self.default(body) if callable(self.default) else self.default

    def refusal(self, body: Body) -> tuple[int, str] | None:
        """Return the status and words with which Ollama refuses such a request, if it does."""
        model = str(body.get("model", ""))
        if model.removesuffix(":latest") not in self.models:
            return 404, f"model '{model}' not found"
        if body.get("tools") and "tools" not in self.capabilities:
            return 400, f'"{model}" does not support tools'
        if body.get("think") and "thinking" not in self.capabilities:
            return 400, f'"{model}" does not support thinking'
        return None


class Answer(Response):
    """Plays a script to one client, and notices when that client goes away."""

    def __init__(self, application: ModelApplication, kind: Kind, request: RecordedRequest) -> None:
        super().__init__()
        self._application = application
        self._kind = kind
        self._request = request
        self._script = application.plan.next_for(request.body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Race the answer against the client's disconnect."""
        playing = asyncio.create_task(self._play(scope, receive, send))
        leaving = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait({playing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if playing.done():
                self._request.finished_at = time.monotonic()
                playing.result()
            else:
                self._request.disconnected_at = time.monotonic()
        finally:
            for task in (playing, leaving):
                task.cancel()
            await asyncio.gather(playing, leaving, return_exceptions=True)
            await self._application.journal.announce()

    async def _play(self, scope: Scope, receive: Receive, send: Send) -> None:
        script, body = self._script, self._request.body
        if script.status != 200:
            error = script.error_text(str(body.get("model", "")))
            await JSONResponse({"error": error}, script.status)(scope, receive, send)
            return
        application = self._application
        generation = Generation(
            self._kind, self._request, script, application.runner, application.journal
        )
        async with aclosing(generation.lines()) as answer:
            if body.get("stream", True):
                await self._stream(answer, send)
            else:
                response = await self._collect(answer)
                await response(scope, receive, send)

    async def _stream(self, answer: AsyncIterator[Line], send: Send) -> None:
        started = False

        async def put(data: bytes, *, more: bool = True) -> None:
            nonlocal started
            if not started:
                started = True
                self._request.first_byte_at = time.monotonic()
                await send(_start(b"application/x-ndjson"))
            await send({"type": "http.response.body", "body": data, "more_body": more})

        try:
            async for line in answer:
                await put(lines.encode(line))
        except Cut:
            pass
        except Malformed:
            await put(lines.MALFORMED)
        except Reset:
            # Ending a response without its last part makes the server drop the connection.
            await put(b"")
            return
        await put(b"", more=False)

    async def _collect(self, answer: AsyncIterator[Line]) -> Response:
        collected: list[Line] = []
        try:
            async for line in answer:
                if "error" in line:
                    return JSONResponse(line, 500)
                collected.append(line)
        except (Cut, Reset):
            return Response(b"", media_type="application/json")
        except Malformed:
            return Response(lines.MALFORMED, media_type="application/json")
        return JSONResponse(lines.joined(self._kind, collected))


class ModelApplication:
    """The state behind the routes, in one event loop."""

    def __init__(self, plan: Plan, slots: int) -> None:
        self.plan = plan
        self.journal = Journal()
        self.runner = Runner(slots)
        self.asgi = Starlette(
            routes=[
                Route("/", _home, methods=["GET", "HEAD"]),
                Route("/api/version", _version),
                Route("/api/tags", self._tags),
                Route("/api/ps", self._ps),
                Route("/api/show", self._show, methods=["POST"]),
                Route("/api/chat", self._chat, methods=["POST"]),
                Route("/api/generate", self._generate, methods=["POST"]),
                Route("/api/embed", self._embed, methods=["POST"]),
                Route("/api/embeddings", self._embeddings, methods=["POST"]),
                *control.routes(self),
            ]
        )

    async def _chat(self, request: Request) -> Response:
        return await self._call("chat", request)

    async def _generate(self, request: Request) -> Response:
        return await self._call("generate", request)

    async def _call(self, kind: Kind, request: Request) -> Response:
        recorded = await self._record(request)
        if refusal := self.plan.refusal(recorded.body):
            return JSONResponse({"error": refusal[1]}, refusal[0])
        return Answer(self, kind, recorded)

    async def _embed(self, request: Request) -> Response:
        recorded = await self._record(request)
        body = recorded.body
        if refusal := self.plan.refusal(body):
            return JSONResponse({"error": refusal[1]}, refusal[0])
        given = body.get("input", "")
        texts = given if isinstance(given, list) else [given]
        vectors = [_embedding(str(text)) for text in texts]
        count = sum(len(str(text).split()) for text in texts) or prompt_size(recorded)
        return JSONResponse(
            {"model": body.get("model"), "embeddings": vectors, "prompt_eval_count": count}
        )

    async def _embeddings(self, request: Request) -> Response:
        """The older route: one text, and no counts."""
        recorded = await self._record(request)
        if refusal := self.plan.refusal(recorded.body):
            return JSONResponse({"error": refusal[1]}, refusal[0])
        return JSONResponse({"embedding": _embedding(str(recorded.body.get("prompt", "")))})

    async def _record(self, request: Request) -> RecordedRequest:
        body = await request.json()
        recorded = self.journal.open(request.url.path, body, dict(request.headers))
        await self.journal.announce()
        return recorded

    async def _tags(self, request: Request) -> Response:
        return JSONResponse({"models": [_described(model) for model in self.plan.models]})

    async def _ps(self, request: Request) -> Response:
        loaded = self.runner.loaded
        return JSONResponse({"models": [_described(loaded.model)] if loaded else []})

    async def _show(self, request: Request) -> Response:
        body = await request.json()
        if refusal := self.plan.refusal(body):
            return JSONResponse({"error": refusal[1]}, refusal[0])
        return JSONResponse(
            {
                "details": {"family": "scripted", "format": "gguf"},
                "model_info": {
                    "general.architecture": "scripted",
                    "scripted.context_length": self.plan.made_for,
                },
                "capabilities": list(self.plan.capabilities),
            }
        )


async def _home(request: Request) -> Response:
    return PlainTextResponse("Ollama is running")


async def _version(request: Request) -> Response:
    return JSONResponse({"version": VERSION})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _start(content_type: bytes) -> dict[str, object]:
    headers = [(b"content-type", content_type)]
    return {"type": "http.response.start", "status": 200, "headers": headers}


def _described(model: str) -> Line:
    name = model if ":" in model else f"{model}:latest"
    digest = hashlib.sha256(name.encode()).hexdigest()
    return {"name": name, "model": name, "size": 1, "digest": digest, "details": {"format": "gguf"}}


def _embedding(text: str) -> list[float]:
    digest = hashlib.sha256(text.encode()).digest()
    return [byte / 255 for byte in digest[:EMBEDDING_SIZE]]
