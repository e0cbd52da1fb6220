"""What a server lets be read beside its tools: resources and prompts, as it lists them."""

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


@dataclass(frozen=True, slots=True)
class Readable:
    """What one server lets be read. A part is None while the server has not said what is in it."""

    resources: tuple[ListedResource, ...] | None = None
    prompts: tuple[ListedPrompt, ...] | None = None

    def over(self, earlier: Readable) -> Readable:
        """This, and of parts that nothing is known of, what was known earlier."""
        return Readable(
            earlier.resources if self.resources is None else self.resources,
            earlier.prompts if self.prompts is None else self.prompts,
        )


NOTHING_SAID = Readable()
