"""The embedding model on Ollama's wire, on a real socket, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.embedding.model import minilm
from tests.support.model_server.server import QuickServer, listen

EMBEDDING_MODEL: Final = "all-minilm"


@dataclass
class EmbeddingServer:
    """Answers ``/api/embed`` as Ollama does; use it as ``async with EmbeddingServer() as server``.

    ``mood`` may be changed at any time: it fails, or never answers.
    """

    mood: Literal["well", "failing", "hanging"] = "well"
    texts: list[list[str]] = field(default_factory=list)
    """What was to be embedded, one list for each call."""

    async def __aenter__(self) -> Self:
        self._socket = listen()
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="embeddings", daemon=True)
        self._thread.start()
        await asyncio.to_thread(self._ready.wait)
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._server.end)
        await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        routes = [
            Route("/api/embed", self._embed, methods=["POST"]),
            Route("/api/tags", self._tags),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes),
            log_config=None,
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=0,
        )
        self._server = QuickServer(config)
        minilm()  # to load it takes longer than some wait for an answer
        self._ready.set()
        await self._server.serve(sockets=[self._socket])

    async def _embed(self, request: Request) -> Response:
        body: dict[str, Any] = await request.json()
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        self.texts.append(texts)
        if str(body["model"]).removesuffix(":latest") != EMBEDDING_MODEL:
            return JSONResponse({"error": f"model '{body['model']}' not found"}, 404)
        if self.mood == "failing":
            return JSONResponse({"error": "the runner has ended"}, 500)
        if self.mood == "hanging":
            while not await request.is_disconnected():  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.02)
            return Response()
        model = minilm()
        vectors = [model.embed(text) for text in texts]
        return JSONResponse(
            {
                "model": body["model"],
                "embeddings": vectors,
                "total_duration": 1,
                "load_duration": 1,
                "prompt_eval_count": sum(len(text.split()) for text in texts),
            }
        )

    async def _tags(self, request: Request) -> Response:
        name = f"{EMBEDDING_MODEL}:latest"
        return JSONResponse({"models": [{"name": name, "model": name}]})
