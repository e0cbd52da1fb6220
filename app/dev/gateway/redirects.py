"""Where a person goes after signing in: back to where they were, and never elsewhere."""

from __future__ import annotations

import re
from urllib.parse import quote

SIGN_IN_PATH = "/oauth2/start"

# One slash, then not another: browsers read ``//host`` and ``/\host`` as another site.
# Printable ASCII only: browsers drop tabs and newlines, which could hide the second slash.
_LOCAL = re.compile(r"/(?![/\\])[!-\[\]-~]*")
_LONGEST = 2048


def local_address(wanted: str | None) -> str:
    """Return the address if it is a path on this site, else the start page."""
    if wanted is None or len(wanted) > _LONGEST or not _LOCAL.fullmatch(wanted):
        return "/"
    return "/" if wanted.startswith("/oauth2/") else wanted


def sign_in_address(back_to: str) -> str:
    """Return the address of the sign-in page that leads back to this one."""
    target = local_address(back_to)
    return SIGN_IN_PATH if target == "/" else f"{SIGN_IN_PATH}?rd={quote(target, safe='/')}"
