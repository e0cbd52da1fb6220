"""What an authorization server does, and how it can be made to do it wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass
class Behaviour:
    """Changed by a test as it goes along."""

    consents: bool = True
    """Whether the person says yes."""
    takes_documents: bool = True
    """Whether a client may be the address of its own description."""
    expires_in: int | None = 3600
    rotates: bool = True
    """Whether a refresh token is good for once."""
    names_issuer: bool = True
    """Whether it says in its answers to the browser who it is."""
    answers_as: str | None = None
    """Who it then says it is; None is the truth."""
    document_place: Literal["oauth", "openid", "openid appended"] = "oauth"
    """Where its description is."""
    describes: Literal[
        "truly",
        "redirect",
        "page",
        "labelled a page",
        "list",
        "depth",
        "flood",
        "failure",
        "break",
    ] = "truly"
    """How it answers when it is asked for that description."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Replaces fields of its description; None takes one away."""
    token: dict[str, Any] = field(default_factory=dict)
    """Replaces fields of what comes for a code."""
    loses_answers: bool = False
    """Whether what the token endpoint has done is not told: the connection breaks off."""
    refuses_with: str | None = None
    """An error that the token endpoint answers with, whatever is asked."""
