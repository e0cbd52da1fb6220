"""What clients get about their connections to tool servers, and what they may send."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from app.api.schemas import StrictModel
from app.connections.own import LONGEST_HEADER, LONGEST_KEY
from app.connections.rows import AuthKind
from app.connections.standing import State
from app.outbound.urls import LONGEST_URL

MOST_RULES = 256
"""Of one person on one server: as many as it may have tools."""

_EXAMPLE: dict[str, Any] = {
    "server": "tickets",
    "title": "Tickets",
    "scope": "per_user",
    "transport": "http",
    "own": False,
    "url": None,
    "enabled": True,
    "credential": {"kind": "key", "is_set": True, "expires_at": None},
    "state": "available",
    "reason": None,
    "tools": [
        {
            "name": "search",
            "title": "Search tickets",
            "description": "Finds tickets by their words.",
            "read_only": True,
        }
    ],
    "resources": 3,
    "prompts": 1,
    "approval": {
        "rules": {
            "*": {"operator": "never", "yours": "first_use"},
            "close": {"operator": "always", "yours": None},
        }
    },
    "listed_at": "2026-03-01T10:15:00.000000Z",
    "updated_at": "2026-03-01T10:15:00.000000Z",
}

Stricter = Literal["always", "first_use"]


class CredentialView(BaseModel):
    """What a server wants to know its caller by. What is set is never told."""

    kind: AuthKind
    is_set: bool
    expires_at: datetime | None = Field(
        description="Of an authorization's token, which is renewed before."
    )


class ToolView(BaseModel):
    """A tool, in its server's words."""

    name: str
    title: str | None
    description: str
    read_only: bool = Field(description="Whether the operator says that it changes nothing.")


class ApprovalRuleView(BaseModel):
    """When one is asked before a tool is called: the stricter of both counts."""

    operator: Literal["never", "first_use", "always", "by_arguments"] = Field(
        description="The operator's rule; of one's own server, `always`."
    )
    yours: Stricter | None = Field(description="One's own word.")


class ApprovalRulesView(BaseModel):
    """When one is asked before a server's tools are called."""

    rules: dict[str, ApprovalRuleView] = Field(
        description="By the tool's name; `*` is all that are not named."
    )


class ConnectionView(BaseModel):
    """A tool server, and how it stands with whoever asks."""

    model_config = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    server: str = Field(description="Its name, which its tools' names begin with.")
    title: str
    scope: Literal["shared", "per_user"] = Field(
        description="Whether everybody uses one connection, which is given nothing of anybody's."
    )
    transport: Literal["stdio", "http"]
    own: bool = Field(description="Whether one has added it oneself.")
    url: str | None = Field(description="Of one's own.")
    enabled: bool = Field(description="Whether one's runs may use it.")
    credential: CredentialView
    state: State
    reason: str | None = Field(description="A stable code: why it is in this state.")
    tools: list[ToolView] = Field(description="What it listed when it was last looked at.")
    resources: int = Field(ge=0, description="How many of its resources may be mentioned.")
    prompts: int = Field(
        ge=0, description="How many of its prompts may be: those that need no arguments."
    )
    approval: ApprovalRulesView
    listed_at: datetime | None
    updated_at: datetime | None = Field(description="Null where nothing is stored of it yet.")


class OwnCredential(StrictModel):
    """How a server of one's own wants to be told who calls."""

    kind: AuthKind = "none"
    header: str | None = Field(
        None, max_length=LONGEST_HEADER, description="Where a key goes. Default: `Authorization`."
    )
    key: str | None = Field(
        None,
        max_length=LONGEST_KEY,
        description="In `Authorization` it stands after `Bearer`, elsewhere by itself.",
    )


class ConnectionCreate(StrictModel):
    """A server of one's own."""

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9-]{0,39}$", description="Its tools' names begin with it."
    )
    url: str = Field(
        max_length=LONGEST_URL, description="Where it is, on the public internet, by https."
    )
    credential: OwnCredential = Field(default_factory=lambda: OwnCredential.model_validate({}))


_ToolName = Annotated[str, StringConstraints(min_length=1, max_length=128)]


class ApprovalPut(StrictModel):
    """When one wants to be asked, instead of what one said before."""

    rules: dict[_ToolName, Stricter] = Field(
        max_length=MOST_RULES,
        description="By the tool's name; `*` is all that are not named. What makes nothing"
        " stricter changes nothing.",
    )


class KeyPut(StrictModel):
    """A key for a server."""

    key: str = Field(min_length=1, max_length=LONGEST_KEY)
