"""What a call's arguments, or a tool's schema, are compared by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def fingerprint(value: Mapping[str, Any]) -> bytes:
    """SHA-256 of a JSON object: the same for the same members, in whichever order they come."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
