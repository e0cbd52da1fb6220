"""What goes wrong with a request to an address that a person named.

None of these says what lies behind an address: a name that does not exist, one that leads inside,
a port nobody listens on and a certificate that does not fit are the same error, so that nobody can
draw a map of the inner network with them.
"""

from __future__ import annotations

from tenancy.errors import InvalidInput, StoaError


class UrlRefused(InvalidInput):
    """The URL is not one that is asked, by its look alone. Says what is wrong with it."""

    code = "url_not_allowed"
    message = "This address cannot be used."


class OutboundError(StoaError):
    """A request that was sent, or was to be sent, came to nothing."""

    code = "outbound_failed"
    message = "The server could not be asked."


class Unreachable(OutboundError):
    """There is no connection: for whatever reason, an address that is not public among them."""

    code = "unreachable"
    message = "The server could not be reached."


class TimedOut(OutboundError):
    """The server was reached, but took too long."""

    code = "timeout"
    message = "The server took too long."


class AnswerTooLarge(OutboundError):
    """The answer is longer than is read."""

    code = "too_large"
    message = "The server's answer is too large."


class AnswerBroken(OutboundError):
    """The answer ended early, or is not HTTP as it is understood here."""

    code = "broken"
    message = "The server's answer could not be read."
