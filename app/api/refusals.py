"""What a request can be refused for before anybody looks at what it asks."""

from __future__ import annotations

from tenancy.errors import InvalidInput, StoaError


class MalformedRequest(StoaError):
    """The request cannot be understood: not JSON, too deep, a header that means nothing."""

    code = "malformed_request"
    message = "The request cannot be understood."


class InvalidSearch(MalformedRequest):
    """A search has fields that it cannot have. Their values are not repeated."""

    code = "invalid_search"
    message = "Some fields cannot be accepted."

    def __init__(self, errors: list[dict[str, object]]) -> None:
        super().__init__()
        self.errors = errors


class BodyTooLarge(StoaError):
    """The body is larger than this service reads."""

    code = "body_too_large"
    message = "The request is too large."


class UnsupportedMediaType(StoaError):
    """The body is not declared as JSON."""

    code = "unsupported_media_type"
    message = "Send the body as application/json."


class ForeignOrigin(StoaError):
    """A page of another origin tries to change something with this person's session."""

    code = "foreign_origin"
    message = "Pages of other origins may not do this."


class InvalidFields(InvalidInput):
    """Named fields of the request cannot be accepted. Their values are not repeated."""

    def __init__(self, errors: list[dict[str, object]]) -> None:
        super().__init__("Some fields cannot be accepted.")
        self.errors = errors
