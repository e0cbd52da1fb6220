"""A model server that takes time for each token and counts them, as Ollama does.

What it is asked says how long it takes: ``"<tokens of the prompt> <tokens of the answer>"``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from app.bench.model import PacedModel, line

if TYPE_CHECKING:
    from app.bench.fairness.people import Pace

_TOKENS_A_LINE = 40


class CountingModel(PacedModel):
    """Answers any number of chats at once, each at the same pace."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(str, pace.output)
        self._pace = pace

    async def _chat(
        self,
        asked: dict[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        prompt, output = map(int, asked["messages"][-1]["content"].split())
        clock = asyncio.get_running_loop().time
        done_at = clock() + prompt * self._pace.prompt
        self._begin(writer)
        for first in range(0, output, _TOKENS_A_LINE):
            tokens = min(_TOKENS_A_LINE, output - first)
            done_at += tokens * self._pace.output
            await asyncio.sleep(done_at - clock())
            if reader.at_eof():
                raise ConnectionResetError
            writer.write(line(" word" * tokens))
            await writer.drain()
        self._end(writer, prompt_eval_count=prompt, eval_count=output)
        await writer.drain()
