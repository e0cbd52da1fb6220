"""Work on something large, whose length a person chose.

Parsing and serialising hold the interpreter: large pieces are worked on in a thread, one at a time,
so that everybody else is served between. Of one person's, one stands in that line.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from app.runs.sizes import is_large
from app.runs.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenancy.principal import UserId

Params = ParamSpec("Params")
Result = TypeVar("Result")

_one_at_a_time = asyncio.Semaphore(1)
_own: WeakValueDictionary[UserId, asyncio.Lock] = WeakValueDictionary()


async def in_turn(
    user_id: UserId,
    function: Callable[Params, Result],
    *args: Params.args,
    **kwargs: Params.kwargs,
) -> Result:
    """Call a function in a thread, when it is the person's turn.

    Who is cancelled in it leaves only when the thread is done: it cannot be stopped, and the next
    one must not work beside it.
    """
    own = _own.setdefault(user_id, asyncio.Lock())
    async with own, _one_at_a_time:
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(None, partial(function, *args, **kwargs))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            raise


async def json_in_turn(user_id: UserId, value: object) -> bytes:
    """A value of a person's as ``to_json`` makes it; a large one in turn."""
    return await in_turn(user_id, to_json, value) if is_large(value) else to_json(value)
