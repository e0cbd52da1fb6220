"""How two embeddings are compared in the database: by pgvector where it is there, or without it.

Embeddings are ``real[]`` either way, so pgvector may come and go between two migrations. Only its
arithmetic is used, never an index of its: an approximate one looks at everybody's rows before row
security does, and loses some of one person's.
"""

from __future__ import annotations

CREATE_EXTENSION = """
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')
    AND NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector')
  THEN
    CREATE SCHEMA IF NOT EXISTS vectors;
    GRANT USAGE ON SCHEMA vectors TO PUBLIC;
    CREATE EXTENSION vector SCHEMA vectors;
  END IF;
EXCEPTION WHEN insufficient_privilege THEN
  NULL;  -- only a superuser may, on most servers: an operator's to do, and not needed
END $$
"""
"""Creates pgvector where the server has it and the migrating role may: in a schema of its own, not
among our tables and functions."""

FIND_EXTENSION = """
SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'vector' AND has_schema_privilege('public', n.oid, 'USAGE')
"""
"""The schema that pgvector is in, quoted, if everybody may use it there."""

_WITH_PGVECTOR = """
CREATE OR REPLACE FUNCTION tenant.similarity(p_one real[], p_other real[]) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN cardinality(p_one) = cardinality(p_other) AND cardinality(p_one) <= 16000
    THEN -(p_one::{schema}.vector OPERATOR({schema}.<#>) p_other::{schema}.vector)
  END
$$
"""
_WITHOUT = """
CREATE OR REPLACE FUNCTION tenant.similarity(p_one real[], p_other real[]) RETURNS float8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  total float8 := 0;
BEGIN
  IF cardinality(p_one) <> cardinality(p_other) THEN
    RETURN NULL;
  END IF;
  FOR n IN 1..cardinality(p_one) LOOP
    total := total + p_one[n] * p_other[n];
  END LOOP;
  RETURN total;
END $$
"""


def similarity_statement(pgvector_schema: str | None) -> str:
    """The function that compares two embeddings of length 1: their cosine.

    It is null where their lengths differ. ``pgvector_schema`` is quoted already.
    """
    if pgvector_schema is None:
        return _WITHOUT
    return _WITH_PGVECTOR.format(schema=pgvector_schema)
