"""What a server lets be read beside its tools: resources and prompts, as it lists them. Values only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListedResource:
    """Something that can be read, as its server describes it, within bounds. Untrusted text."""

    uri: str
    """What the server knows it by. It is for that server alone: no address, and no link."""
    name: str
    title: str | None = None
    description: str = ""
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """Something that a prompt is to be told."""

    name: str
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class ListedPrompt:
    """A prompt as its server describes it, within bounds. Untrusted text."""

    name: str
    title: str | None = None
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()

    @property
    def needs_arguments(self) -> bool:
        """Whether it says nothing unless it is told something first."""
        return any(each.is_required for each in self.arguments)
