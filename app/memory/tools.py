"""The agent's own tools for remembering. They are made for one run: whose memories, is not said.

A call that is made again after a crash does nothing twice: what is kept is kept under an id that
is made of the run, the call's place and its words.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from langchain_core.tools import StructuredTool, ToolException
from pydantic import BaseModel, ConfigDict, Field, field_validator

from app.memory.search import MOST_QUERY
from app.tools.calls import AgentTool
from app.tools.site import site_of_call
from app.tools.texts import storable
from tenancy.checkpoints.memories import MOST_CHARACTERS
from tenancy.database.retry import while_database_is_away
from tenancy.errors import MemoryFull

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from app.memory.memories import Memory
    from app.memory.search import MemorySearch
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun
    from tenancy.scheduler.limits import Limits

MOST_FOUND = 10
"""Memories in one answer of ``recall``."""
TOOL_NAMES = ("remember", "recall", "forget")
_SECONDS = 30.0
_REMEMBER = "SELECT * FROM tenant.remember($1, $2, $3, $4, $5, $6)"
_FORGET = "SELECT tenant.forget($1, $2, $3, $4)"


class _Arguments(BaseModel):
    """What a tool takes, and nothing else: what a model makes up is refused, not overlooked."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _is_storable(cls, value: object) -> object:
        return storable(value) if isinstance(value, str) else value


class Remember(_Arguments):
    """Arguments of ``remember``."""

    content: str = Field(
        min_length=1,
        max_length=MOST_CHARACTERS,
        description="One fact, as a sentence that can be understood without this conversation.",
    )


class Recall(_Arguments):
    """Arguments of ``recall``."""

    query: str = Field(min_length=1, max_length=MOST_QUERY, description="What you want to know.")


class Forget(_Arguments):
    """Arguments of ``forget``."""

    memory_id: UUID | None = Field(
        None, description="Which memory, by the memory_id that recall has shown."
    )
    what: str | None = Field(
        None,
        max_length=MOST_CHARACTERS,
        description="Or its text. If none says exactly this, you are shown those that are near.",
    )


def memory_tools(
    database: TenantDatabase, run: ClaimedRun, limits: Limits, search: MemorySearch
) -> dict[str, AgentTool]:
    """``remember``, ``recall`` and ``forget`` for the user of one run, by their names."""
    tools = _MemoryTools(database, run, limits, search)
    made = (
        _tool(tools.remember, Remember, read_only=False),
        _tool(tools.recall, Recall, read_only=True),
        _tool(tools.forget, Forget, read_only=False),
    )
    return {tool.name: tool for tool in made}


def _tool(
    function: Callable[..., Coroutine[Any, Any, str]],
    arguments: type[_Arguments],
    *,
    read_only: bool,
) -> AgentTool:
    tool = StructuredTool.from_function(
        coroutine=function, args_schema=arguments, handle_tool_error=True
    )
    return AgentTool(tool, read_only=read_only, timeout_seconds=_SECONDS)


class _MemoryTools:
    """The names and docstrings of the methods are what the model is told."""

    def __init__(
        self, database: TenantDatabase, run: ClaimedRun, limits: Limits, search: MemorySearch
    ) -> None:
        self._database = database
        self._run = run
        self._limits = dict(limits)
        self._search = search

    async def remember(self, content: str) -> str:
        """Remember something about the person you talk to, for all later conversations.

        Use it when they ask you to, and for lasting facts and wishes. Not for secrets such as
        passwords.
        """
        content = content.strip()
        if not content:
            raise ToolException("There is nothing in `content` to remember.")
        fence = (self._run.run_id, self._run.fence)
        key = _key_of_call(self._run, content)
        try:
            (row,) = await while_database_is_away(
                self._database.call, self._run, _REMEMBER, *fence, key, content, self._limits
            )
        except MemoryFull:
            raise ToolException(
                "The person's memory is full: nothing was kept. They can delete memories."
            ) from None
        said = "Remembered." if row["is_new"] else "This was known already."
        return json.dumps({"result": said, "memory_id": str(row["memory_id"])})

    async def recall(self, query: str) -> str:
        """Look up what you have remembered about the person, in this or earlier conversations."""
        found = await self._search.find(query, MOST_FOUND)
        return _listing([each.memory for each in found])

    async def forget(self, memory_id: UUID | None = None, what: str | None = None) -> str:
        """Forget one memory, when the person asks for it or it is wrong."""
        if memory_id is not None:
            return await self._forget(memory_id)
        if what is None or not what.strip():
            raise ToolException("Say which memory: its `memory_id`, or `what` it says.")
        near = [each.memory for each in await self._search.find(what, MOST_FOUND)]
        same = [memory for memory in near if _same(memory.content, what)]
        if same:
            return await self._forget(same[0].memory_id)
        raise ToolException(
            f"Nothing was forgotten: no memory says exactly this. Near it: {_listing(near)}"
        )

    async def _forget(self, memory_id: UUID) -> str:
        fence = (self._run.run_id, self._run.fence)
        # Made again after a commit whose answer was lost, it finds nothing, which is as well.
        ((forgotten,),) = await while_database_is_away(
            self._database.call, self._run, _FORGET, *fence, memory_id
        )
        return "Forgotten." if forgotten else "There is no such memory (any more)."


def _key_of_call(run: ClaimedRun, content: str) -> UUID:
    """The same in every attempt at the same call. Some models number no calls, hence the words."""
    site = site_of_call.get()
    return uuid5(run.run_id, json.dumps([site.message_id, site.tool_call_id, content]))


def _same(one: str, other: str) -> bool:
    """Whether two texts say the same but for letter case, spaces and the last full stop."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> list[str]:
    return text.casefold().strip(" .\n").split()


def _listing(memories: list[Memory]) -> str:
    shown = [
        {
            "memory_id": str(each.memory_id),
            "content": each.content,
            "noted": each.updated_at.date().isoformat(),
        }
        for each in memories
    ]
    return json.dumps(shown, ensure_ascii=False)
