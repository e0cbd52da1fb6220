"""A PostgreSQL 18 server out of a wheel, run as a child of this process."""

from app.dev.postgres.server import EmbeddedPostgres as EmbeddedPostgres
