"""Streams end with their process, or when their reader may not read on."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from app.api.streams import OpenStreams
from tenancy.principal import UserId

PATIENCE = 60.0


async def until_waiting(*streams: asyncio.Task[None]) -> None:
    """Let each begin to wait."""
    await asyncio.wait(streams, timeout=0)
    await asyncio.sleep(0)


async def test_one_persons_streams_end_and_nobody_elses() -> None:
    streams, ada, ben = OpenStreams(), UserId(uuid4()), UserId(uuid4())
    own = [asyncio.ensure_future(streams.closing_for(ada)()) for _ in range(2)]
    other = asyncio.ensure_future(streams.closing_for(ben)())
    await until_waiting(*own, other)
    assert streams.readers == {ada, ben}
    streams.end(ada)
    await asyncio.wait_for(asyncio.gather(*own), PATIENCE)
    assert not other.done()
    assert streams.readers == {ben}
    streams.close()
    await asyncio.wait_for(other, PATIENCE)
    assert streams.readers == frozenset()


async def test_a_stream_that_opens_while_the_process_ends_ends_at_once() -> None:
    streams = OpenStreams()
    streams.close()
    await asyncio.wait_for(streams.closing_for(UserId(uuid4()))(), PATIENCE)


async def test_a_stream_that_was_given_up_is_forgotten() -> None:
    streams, ada = OpenStreams(), UserId(uuid4())
    stream = asyncio.ensure_future(streams.closing_for(ada)())
    await until_waiting(stream)
    stream.cancel()
    await asyncio.gather(stream, return_exceptions=True)
    assert streams.readers == frozenset()
