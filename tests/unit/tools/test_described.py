"""What a model is told of a tool is worked out once, however many runs have the tool."""

from __future__ import annotations

import gc
import weakref

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from app.tools.described import described


class Note(BaseModel):
    """Arguments of a tool."""

    text: str = Field(description="What to write.")


def tool(arguments: type[BaseModel] = Note, about: str = "Writes.") -> BaseTool:
    async def write(text: str) -> str:
        return text

    return StructuredTool.from_function(coroutine=write, description=about, args_schema=arguments)


class TestADescription:
    def test_says_the_name_what_for_and_the_arguments(self) -> None:
        said = described(tool())["function"]
        assert (said["name"], said["description"]) == ("write", "Writes.")
        assert said["parameters"]["properties"]["text"]["description"] == "What to write."

    def test_is_one_for_the_tools_of_all_runs(self) -> None:
        assert described(tool()) is described(tool())

    def test_of_a_tool_that_says_something_else_is_another(self) -> None:
        said = [described(tool(about=about))["function"]["description"] for about in ("A.", "B.")]
        assert said == ["A.", "B."]

    def test_of_a_servers_tool_is_made_of_its_schema(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
        made = StructuredTool.from_function(
            coroutine=tool().ainvoke, name="add", description="Adds.", args_schema=schema
        )
        assert described(made)["function"]["parameters"]["properties"] == schema["properties"]

    def test_goes_with_the_class_that_only_one_run_had(self) -> None:
        class Once(BaseModel):
            """Arguments that nobody has again."""

            text: str

        described(tool(Once))
        gone = weakref.ref(Once)
        del Once
        gc.collect()
        assert gone() is None
