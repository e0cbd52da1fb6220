"""Runs the revisions on the connection that ``tenancy.migrate`` opened; nobody else runs it."""

from __future__ import annotations

from alembic import context
from tenancy.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
