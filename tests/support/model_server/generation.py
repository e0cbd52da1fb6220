"""Turns a script into the lines of an answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator

from tests.support.model_server import lines
from tests.support.model_server.journal import Journal, RecordedRequest
from tests.support.model_server.lines import Kind, Line
from tests.support.model_server.runner import Loaded, Runner
from tests.support.model_server.script import Script, answer_tokens

NANOSECONDS = 1_000_000_000


class Cut(Exception):
    """The body ends here without ``done``."""


class Reset(Exception):
    """The connection is dropped here."""


class Malformed(Exception):
    """A line that is no JSON, and nothing after it."""


class Generation:
    """One answer in the making."""

    def __init__(
        self, kind: Kind, request: RecordedRequest, script: Script, runner: Runner, journal: Journal
    ) -> None:
        self._kind = kind
        self._model = str(request.body.get("model", ""))
        self._request = request
        self._script = script
        self._runner = runner
        self._journal = journal

    async def lines(self) -> AsyncGenerator[Line]:
        """Yield the answer's lines, at the script's pace, to where the script ends it.

        Raises:
            Cut, Reset, Malformed: the script says that the answer ends like this.
        """
        script = self._script
        wanted = Loaded(self._model, self._request.options.get("num_ctx"))
        load_seconds = await self._runner.load(wanted, script.load_seconds)
        if script.load_only or self._only_loads():
            yield lines.done(self._kind, self._model, reason="load", metrics={})
            return
        async with self._runner.slot():
            self._request.started_at = time.monotonic()
            prompt_tokens, prefill_seconds = await self._prefill()
            async for line in self._answer():
                yield line
                if "error" in line:
                    return
            yield self._done(load_seconds, prompt_tokens, prefill_seconds)

    async def _prefill(self) -> tuple[int, float]:
        script = self._script
        tokens = script.prompt_tokens
        if tokens is None:
            tokens = prompt_size(self._request)
        speed = script.prefill_tokens_per_second
        seconds = max(0, tokens - script.cached_tokens) / speed if speed else 0
        await asyncio.sleep(seconds)
        return tokens, seconds

    async def _answer(self) -> AsyncIterator[Line]:
        pieces = [(thought, "") for thought in self._script.thinking]
        pieces += [("", token) for token in answer_tokens(self._script, self._request.body)]
        limited = pieces[: self._limit(len(pieces))]
        for position, (thinking, content) in enumerate(limited):
            async for line in self._mishap(position):
                yield line
                return
            await self._decode()
            self._request.tokens_sent += 1
            yield lines.chunk(self._kind, self._model, content=content, thinking=thinking)
        async for line in self._mishap(len(limited), or_later=True):
            yield line
            return
        if self._script.tool_calls and self._script.tool_calls_in == "chunk":
            yield lines.chunk(self._kind, self._model, tool_calls=self._script.tool_calls)

    async def _mishap(self, position: int, *, or_later: bool = False) -> AsyncIterator[Line]:
        """Do what the script has for this position; a yielded line is the last one."""

        def here(at: int | None) -> bool:
            return at is not None and (at == position or (or_later and at > position))

        script = self._script
        if here(script.stall_at):
            await self._journal.stall(self._request)
        if here(script.cut_at):
            raise Cut
        if here(script.reset_at):
            raise Reset
        if here(script.malformed_at):
            raise Malformed
        if here(script.error_at):
            yield {"error": script.error_text(self._model, status=500)}

    async def _decode(self) -> None:
        speed = self._script.decode_tokens_per_second
        await asyncio.sleep(1 / speed if speed else 0)

    def _limit(self, size: int) -> int:
        limit = self._request.options.get("num_predict")
        return min(size, limit) if isinstance(limit, int) and limit >= 0 else size

    def _done(self, load_seconds: float, prompt_tokens: int, prefill_seconds: float) -> Line:
        script, request = self._script, self._request
        started = request.started_at or request.received_at
        decode_seconds = time.monotonic() - started - prefill_seconds
        whole = len(script.thinking) + len(answer_tokens(script, request.body))
        metrics = {
            "total_duration": int((time.monotonic() - request.received_at) * NANOSECONDS),
            "load_duration": int(load_seconds * NANOSECONDS),
            "prompt_eval_count": prompt_tokens,
            "prompt_eval_duration": int(prefill_seconds * NANOSECONDS),
            "eval_count": request.tokens_sent,
            "eval_duration": int(decode_seconds * NANOSECONDS),
        }
        calls = script.tool_calls if script.tool_calls_in == "done" else ()
        reason = "length" if request.tokens_sent < whole else script.done_reason
        return lines.done(self._kind, self._model, reason=reason, metrics=metrics, tool_calls=calls)

    def _only_loads(self) -> bool:
        """Tell whether there is nothing to answer: Ollama then only loads the model."""
        key = "messages" if self._kind == "chat" else "prompt"
        return not self._request.body.get(key)


def prompt_size(request: RecordedRequest) -> int:
    """Return a deterministic count of the prompt's tokens: its words."""
    body = request.body
    return len(json.dumps(body.get("messages") or body.get("prompt") or "").split())
