"""What of a person's rows is handed out, and in which form. Declared once, next to the tables.

Everything is, as PostgreSQL has it in JSON, but for what is named here. What no JSON can hold, a
``bytea``, has to be decided on: ``tests/integration/api/test_export.py`` fails for one that is in
none of these lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECRET = "A secret, which nobody is shown."  # noqa: S105 - what is said of one
_SOMEBODY_ELSES = "Says who else acted; your own rows say what was done."
_OPERATORS = "Names a machine of this service."

WITHHELD: Mapping[str, Mapping[str, str]] = {
    "audit": {"by_reference": _SOMEBODY_ELSES, "account": _SOMEBODY_ELSES},
    "audit_references": {"salt": _SECRET},
    "authorizations": {"sealed": _SECRET},
    "connections": {"credential": _SECRET},
    "data_keys": {"wrapped": _SECRET},
    "run_attempts": {"host": _OPERATORS},
}
"""Columns that are left out, and why; a manifest says so."""

AS_JSON: Mapping[str, frozenset[str]] = {"run_events": frozenset({"data"})}
"""Bytes that are JSON, and handed out as that."""

AS_BASE64: Mapping[str, frozenset[str]] = {
    "approvals": frozenset(
        {"arguments_sha256", "decided_sha256", "memory_sha256", "schema_sha256"}
    ),
    "audit": frozenset({"arguments_sha256"}),
    "authorizations": frozenset({"state_hash"}),
    "checkpoint_blobs": frozenset({"blob"}),
    "checkpoint_writes": frozenset({"blob"}),
    "effects": frozenset({"arguments_sha256"}),
    "idempotency_keys": frozenset({"fingerprint"}),
}
"""Bytes that are nothing but that: hashes, and states as LangGraph packs them."""
