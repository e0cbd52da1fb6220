"""What can be wrong with the vault. Nothing here repeats a key or a value."""

from __future__ import annotations

from tenancy.errors import Conflict, ServiceUnavailable
from tenancy.named_keys import MalformedKeys as MalformedKeys


class VaultNotConfigured(Conflict):
    """There are no keys, so nothing can be kept secret."""

    code = "vault_not_configured"
    message = "This service keeps no credentials: its operator has not set up a vault."


class VaultUnreadable(ServiceUnavailable):
    """Something that was sealed does not open: it was changed, moved, or its keys are gone."""

    code = "vault_unreadable"
    message = "What was kept here cannot be read any more. Set it again, or ask the operator."


class WrappingKeyMissing(VaultUnreadable):
    """The data key is wrapped under a key-encryption key that this process was not given."""

    code = "vault_key_missing"
    message = "A key of the service's vault is missing. Tell the operator."

    def __init__(self, key_id: str) -> None:
        super().__init__()
        self.key_id = key_id
        """Which one; for operators and logs."""
