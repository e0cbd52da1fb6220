"""Read an answer whole, within bounds, from any client of httpx2."""

from __future__ import annotations

import asyncio

import httpx2

from app.outbound.errors import AnswerBroken, AnswerTooLarge, TimedOut


async def read_bounded(response: httpx2.Response, most: int, seconds: float) -> bytes:
    """The body of a streamed answer; the response is closed, whatever comes of it.

    Raises:
        AnswerTooLarge: there are more than so many bytes.
        TimedOut: it does not end within so many seconds.
        AnswerBroken: it breaks off.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > most:
                    raise AnswerTooLarge
    except TimeoutError:
        raise TimedOut from None
    except httpx2.TimeoutException:
        raise TimedOut from None
    except (httpx2.HTTPError, httpx2.StreamError):
        raise AnswerBroken from None
    finally:
        await response.aclose()
    return bytes(body)
