"""From verified claims to an identity."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tenancy.errors import IdentityRejected
from tenancy.principal import ADMIN, Identity

if TYPE_CHECKING:
    from tenancy.identity.assertion import Claims
    from tenancy.identity.settings import JwtIdentitySettings

_LONGEST_SUBJECT = 255
_LONGEST_NAME = 200
_LONGEST_EMAIL = 254
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")
_BIDI_CONTROLS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def to_identity(claims: Claims, settings: JwtIdentitySettings) -> Identity:
    """Return what checked claims say about a person.

    Raises:
        IdentityRejected: the subject cannot be a subject.
    """
    return Identity(
        issuer=claims["iss"],
        subject=_subject(claims["sub"]),
        expires_at=datetime.fromtimestamp(claims["exp"], UTC),
        name=_name(claims.get("name")) or _name(claims.get("preferred_username")),
        email=_email(claims.get("email")),
        roles=_roles(claims.get(settings.admin_claim), settings.admin_value),
    )


def _subject(value: str) -> str:
    """A subject is compared and stored as it is, so it is never repaired."""
    if not 0 < len(value) <= _LONGEST_SUBJECT or any(map(_is_control, value)):
        raise IdentityRejected
    return value


def _name(value: object) -> str | None:
    """A name is only shown: what could disturb the page it is shown on is taken out."""
    if not isinstance(value, str):
        return None
    # A long name is cut twice: before the work, so that the work is bounded, and after.
    visible = "".join(" " if _is_control(c) else c for c in value[: 4 * _LONGEST_NAME])
    visible = "".join(c for c in visible if c not in _BIDI_CONTROLS)
    visible = " ".join(unicodedata.normalize("NFC", visible).split())
    return visible[:_LONGEST_NAME].strip() or None


def _email(value: object) -> str | None:
    """Half an address is another address, so one that is not right is left out."""
    name = _name(value) if isinstance(value, str) and len(value) <= _LONGEST_EMAIL else None
    if name is None or name != value or not _EMAIL.fullmatch(name):
        return None
    return name


def _roles(value: object, admin: str) -> frozenset[str]:
    held = value if isinstance(value, list) else [value]
    return frozenset({ADMIN}) if admin in held else frozenset()


def _is_control(character: str) -> bool:
    """NUL and lone surrogates, which PostgreSQL refuses, are among these."""
    return unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}
