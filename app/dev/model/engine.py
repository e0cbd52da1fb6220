"""SmolLM2 in this process, through llama.cpp."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import xllamacpp

from app.dev.errors import DevelopmentError
from app.dev.model.requests import Part

_PROMPT_CACHE_MIB = 256
_SILENT = -1
_MOST_THREADS = 8


class Engine:
    """Generates answers, a fixed number at once.

    A generation occupies a thread, since llama.cpp calls back from the call that started it.
    """

    def __init__(self, weights: Path, *, slots: int, context: int) -> None:
        self.context = context
        self._free = asyncio.Semaphore(slots)
        self._threads = ThreadPoolExecutor(slots, thread_name_prefix="model")
        self._closing = threading.Event()
        self._llama = _load(weights, slots=slots, context=context)

    async def generate(self, request: Part) -> AsyncGenerator[Part]:
        """Yield the parts of an answer as llama.cpp makes them; a part may be an error.

        Leaving the generator stops the generation.
        """
        async with self._free:
            call = _Call(self._llama, request, self._closing)
            running = asyncio.get_running_loop().run_in_executor(self._threads, call.run)
            try:
                while (part := await call.parts.get()) is not None:
                    yield part
            finally:
                call.stopped.set()
                # The slot is free when llama.cpp has let go of it, not before.
                await asyncio.shield(running)

    def close(self) -> None:
        """Stop what is being generated and free the model."""
        self._closing.set()
        self._threads.shutdown(wait=True)
        self._llama = None


class _Call:
    """One generation, between the thread it runs in and the loop that reads it."""

    def __init__(self, llama: xllamacpp.Server, request: Part, closing: threading.Event) -> None:
        self.parts: asyncio.Queue[Part | None] = asyncio.Queue()
        self.stopped = threading.Event()
        self._llama = llama
        self._request = request
        self._closing = closing
        self._loop = asyncio.get_running_loop()

    def run(self) -> None:
        """Generate to the end, in a thread."""
        try:
            if not self.stopped.is_set():
                self._llama.handle_chat_completions(self._request, self._take)
        except (RuntimeError, TypeError, ValueError):
            # What llama.cpp cannot even read as a request.
            self._put({"error": {"message": "invalid request"}})
        finally:
            self._put(None)

    def _take(self, part: Part) -> bool:
        self._put(part)
        return self.stopped.is_set() or self._closing.is_set()

    def _put(self, part: Part | None) -> None:
        self._loop.call_soon_threadsafe(self.parts.put_nowait, part)


def _threads() -> int:
    """Return how many cores to use: not all of them.

    Its threads wait for each other at every layer, so one that shares its core with the rest of
    the service holds up all: the first token took 0.9 s instead of 0.2 s.
    """
    return min(_MOST_THREADS, max(1, (os.cpu_count() or 2) - 1))


def _load(weights: Path, *, slots: int, context: int) -> xllamacpp.Server:
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_parallel = slots
    params.n_ctx = slots * context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _threads()
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.verbosity = _SILENT
    # llama.cpp opens a port of its own on loopback. Nobody needs it, so nobody gets its key.
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [secrets.token_urlsafe()]
    params.endpoint_slots = False
    params.ui = False
    try:
        return xllamacpp.Server(params)
    except (RuntimeError, ValueError) as error:
        raise DevelopmentError(
            f"The local model cannot be loaded. Delete {weights} and start again."
        ) from error
