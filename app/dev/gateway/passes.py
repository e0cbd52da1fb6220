"""How somebody who signed in is known again: a browser's cookie or a program's token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.dev.gateway.signer import PassKind, Signer

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from app.dev.gateway.person import Person


class Passes:
    """Gives out, recognises and takes back what lets people in.

    Nothing is kept: a pass is good until it expires. Signing out forgets the browser's cookie.
    """

    def __init__(self, signer: Signer, port: int) -> None:
        self._signer = signer
        # Cookies don't know ports: two services on one machine would overwrite each other's.
        self.cookie = f"stoa_gateway_{port}"

    def person(self, request: Request) -> Person | None:
        """Return who sends this request. A bearer token counts before the cookie."""
        authorization = request.headers.getlist("authorization")
        if authorization:
            scheme, _, token = authorization[0].partition(" ")
            if scheme.lower() != "bearer" or len(authorization) > 1:
                return None
            return self._signer.recognise(PassKind.TOKEN, token.strip())
        session = request.cookies.get(self.cookie)
        return self._signer.recognise(PassKind.SESSION, session) if session else None

    def token(self, person: Person) -> str:
        """Return a bearer token for a program."""
        return self._signer.issue(PassKind.TOKEN, person)

    def remember(self, response: Response, person: Person) -> None:
        """Give the browser a session."""
        response.set_cookie(
            self.cookie,
            self._signer.issue(PassKind.SESSION, person),
            max_age=PassKind.SESSION.seconds,
            path="/",
            httponly=True,
            samesite="lax",
        )

    def forget(self, response: Response) -> None:
        """Take the browser's session back."""
        response.delete_cookie(self.cookie, path="/", httponly=True, samesite="lax")
