"""Secrets at rest: sealed under a key per user, which is wrapped under the operator's."""

from tenancy.vault.errors import MalformedKeys as MalformedKeys
from tenancy.vault.errors import VaultNotConfigured as VaultNotConfigured
from tenancy.vault.errors import VaultUnreadable as VaultUnreadable
from tenancy.vault.errors import WrappingKeyMissing as WrappingKeyMissing
from tenancy.vault.keys import WrappingKeys as WrappingKeys
from tenancy.vault.vault import Vault as Vault
