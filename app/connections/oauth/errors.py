"""What can come in the way of an authorization. Codes are stable, and never others' text."""

from __future__ import annotations

from tenancy.errors import Conflict, NotFound, ServiceUnavailable


class AuthorizationNotFound(NotFound):
    """No such authorization is under way for this user: unknown, used, too old, somebody else's."""

    code = "authorization_not_found"
    message = "This authorization is over, or was not begun by you. Begin again."


class OAuthNotConfigured(Conflict):
    """The operator has not said where people reach the service, so nothing could come back."""

    code = "oauth_not_configured"
    message = "This service is not set up for authorizations."


class OAuthNotUsed(Conflict):
    """The server does not ask for an authorization."""

    code = "oauth_not_used"
    message = "This server takes no authorization."


class OAuthRefused(Conflict):
    """The server's authorization is not done in a way that is safe, or not in one that is known."""

    code = "oauth_refused"
    message = "This server's authorization cannot be used."


class OAuthNotOffered(OAuthRefused):
    """Nothing at the server says how it is authorized."""

    code = "oauth_not_offered"
    message = "This server does not say how to authorize."


class OAuthAddressRefused(OAuthRefused):
    """An address that the server names may not be asked."""

    code = "oauth_address_refused"
    message = "This server's authorization is at an address that cannot be used."


class OAuthIssuerMismatch(OAuthRefused):
    """Somebody speaks for an issuer that they are not."""

    code = "oauth_issuer_mismatch"
    message = "This server's authorization names an issuer that does not vouch for it."


class OAuthResourceMismatch(OAuthRefused):
    """The description is of another server."""

    code = "oauth_resource_mismatch"
    message = "This server's authorization is for another server."


class OAuthPkceRequired(OAuthRefused):
    """The authorization server does not say that it checks who redeems a code."""

    code = "oauth_pkce_required"
    message = "This server's authorization does not protect its codes (PKCE with S256)."


class OAuthClientRequired(OAuthRefused):
    """The authorization server wants to know the service beforehand, and doesn't."""

    code = "oauth_client_required"
    message = "This server's authorization has to be registered by the operator first."


class AuthorizationDenied(Conflict):
    """The person, or the authorization server for them, said no."""

    code = "authorization_denied"
    message = "The authorization was refused."


class AuthorizationFailed(Conflict):
    """The authorization server did not give a token for the code that it gave."""

    code = "authorization_failed"
    message = "The authorization did not succeed. Begin again."


class AuthorizationOutdated(Conflict):
    """The connection was changed while the person was asked."""

    code = "authorization_outdated"
    message = "This connection was changed meanwhile. Begin again."


class AuthorizationLost(Conflict):
    """What was authorized is so no more: the person has to be asked again."""

    code = "needs_authorization"
    message = "Authorize this server again."


class AuthorizationServerUnavailable(ServiceUnavailable):
    """The authorization server, or the server itself, cannot be reached or answers nonsense."""

    code = "authorization_server_unavailable"
    message = "The server's authorization cannot be reached right now."
