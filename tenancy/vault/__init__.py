"""Secrets at rest: sealed under a key per user, which is wrapped under the operator's."""
