"""A tool as a model is told of it.

Tools are made for each run, and to describe one whose arguments are a class takes a millisecond of
the processor, with each call of the model. So it is done once for each class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from langchain_core.utils.function_calling import convert_to_openai_tool

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

Description = dict[str, Any]

_known: WeakKeyDictionary[type, dict[tuple[str, str], Description]] = WeakKeyDictionary()


def described(tool: BaseTool) -> Description:
    """Name, description and arguments, as models' APIs take them. Not to be changed."""
    arguments = tool.args_schema
    if not isinstance(arguments, type):  # a schema, that is nearly that already
        return convert_to_openai_tool(tool)
    known = _known.setdefault(arguments, {})
    key = (tool.name, tool.description)
    if key not in known:
        known[key] = convert_to_openai_tool(tool)
    return known[key]


def arguments_schema(tool: BaseTool) -> Mapping[str, Any]:
    """The JSON Schema of a tool's arguments as the model sees it. Not to be changed."""
    if isinstance(tool.args_schema, Mapping):
        return tool.args_schema
    parameters: Mapping[str, Any] = described(tool)["function"]["parameters"]
    return parameters
