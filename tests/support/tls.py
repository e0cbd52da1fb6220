"""For clients that ask by http alone: httpx reads every authority for each client, for 20 ms."""

from __future__ import annotations

import ssl
from typing import Final

NO_AUTHORITY: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody."""
