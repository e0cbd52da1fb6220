"""The graphs that runs can be made of: the built-in agent, and those of a ``langgraph.json``."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from app.agent.agent import build_agent
from app.agent.model import offered
from app.agent.speakers import Speakers
from app.settings import SettingsError
from tenancy.errors import AssistantNotFound

if TYPE_CHECKING:
    from types import ModuleType

    from app.settings import Settings

AGENT = "agent"
SYSTEM_PROMPT = Path(__file__).parent / "prompts" / "system.md"

_ASSISTANTS = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""LangGraph Platform's namespace for default assistants: ids are the same there and here."""


@dataclass(frozen=True, slots=True)
class Assistant:
    """What a run executes: a graph under an id."""

    assistant_id: UUID
    graph_id: str


class GraphCatalogue:
    """All graphs of this process, loaded once."""

    def __init__(self, settings: Settings) -> None:
        self.speakers = Speakers(settings)
        own = self.speakers.default
        agent = build_agent(own.chat, settings.system_prompt or SYSTEM_PROMPT, own.prompt_tokens)
        self._graphs: dict[str, Pregel[Any, Any, Any, Any]] = {AGENT: agent}
        if settings.graphs is not None:
            with offered(own.chat):
                self._graphs |= load_graphs(settings.graphs)
        self._assistants = {uuid5(_ASSISTANTS, graph_id): graph_id for graph_id in self._graphs}

    def resolve(self, assistant: str) -> Assistant:
        """Find an assistant by its id or by its graph's name.

        Raises:
            AssistantNotFound: there is none.
        """
        if assistant in self._graphs:
            return Assistant(uuid5(_ASSISTANTS, assistant), assistant)
        try:
            assistant_id = UUID(assistant)
            return Assistant(assistant_id, self._assistants[assistant_id])
        except (ValueError, KeyError):
            raise AssistantNotFound from None

    def get(self, graph_id: str) -> Pregel[Any, Any, Any, Any]:
        """The compiled graph, without checkpointer or store.

        Raises:
            AssistantNotFound: this process has no such graph.
        """
        try:
            return self._graphs[graph_id]
        except KeyError:
            raise AssistantNotFound from None


def load_graphs(path: Path) -> dict[str, Pregel[Any, Any, Any, Any]]:
    """Load the graphs of a ``langgraph.json``: name to ``./file.py:variable``.

    A variable may hold a compiled graph, a ``StateGraph``, or a function without arguments that
    returns either.

    Raises:
        SettingsError: the file or a graph cannot be loaded; says which.
    """
    try:
        declared = json.loads(path.read_text(encoding="utf-8"))["graphs"]
        entries = {str(name): str(target) for name, target in declared.items()}
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise SettingsError(f"STOA_GRAPHS: {path} is no langgraph.json with graphs") from error
    if AGENT in entries:
        raise SettingsError(f"STOA_GRAPHS: the name `{AGENT}` belongs to the built-in graph")
    return {name: _load_graph(path.parent, name, target) for name, target in entries.items()}


def _load_graph(folder: Path, name: str, target: str) -> Pregel[Any, Any, Any, Any]:
    file, _, variable = target.partition(":")
    try:
        found = getattr(_load_module(folder / file, name), variable)
        if callable(found) and not isinstance(found, Pregel | StateGraph):
            found = found()
    except Exception as error:
        raise SettingsError(f"STOA_GRAPHS: graph `{name}` cannot be loaded: {error}") from error
    if isinstance(found, StateGraph):
        found = found.compile()
    if not isinstance(found, Pregel):
        raise SettingsError(f"STOA_GRAPHS: `{target}` of graph `{name}` is not a graph")
    if found.interrupt_before_nodes or found.interrupt_after_nodes:
        raise SettingsError(
            f"STOA_GRAPHS: graph `{name}` is compiled with breakpoints (`interrupt_before` or"
            " `interrupt_after`), which a run cannot be stopped at: call `interrupt()` in a node"
        )
    return found


def _load_module(file: Path, name: str) -> ModuleType:
    module_name = f"stoa_graph_{name}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module
