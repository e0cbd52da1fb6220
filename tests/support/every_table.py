"""Rows of people's in every table that has any."""

from __future__ import annotations

import asyncpg


async def fill_every_table(superuser: asyncpg.Connection) -> None:
    """A row of each person's in each table that has none, of what hangs on runs and threads too."""
    await superuser.execute(
        """
        INSERT INTO run_events (user_id, run_id, seq, event, data)
          SELECT user_id, run_id, 1, 'metadata', '{}' FROM runs;
        INSERT INTO checkpoints (user_id, thread_id, checkpoint_id, checkpoint)
          SELECT user_id, thread_id, 'c', '{}' FROM threads;
        INSERT INTO checkpoint_blobs (user_id, thread_id, channel, version, type)
          SELECT user_id, thread_id, 'c', '1', 'empty' FROM threads;
        INSERT INTO checkpoint_writes
          (user_id, thread_id, checkpoint_id, task_id, idx, channel, blob)
          SELECT user_id, thread_id, 'c', 't', 0, 'c', '' FROM threads;
        INSERT INTO store (user_id, prefix, key, value)
          SELECT user_id, user_id::text || '.notes', 'k', '{}' FROM users;
        INSERT INTO run_queues (user_id) SELECT user_id FROM users ON CONFLICT DO NOTHING;
        INSERT INTO user_limits (user_id) SELECT user_id FROM users;
        INSERT INTO request_rates (user_id, arrival) SELECT user_id, now() FROM users;
        INSERT INTO usage_hours (user_id, hour, model) SELECT user_id, now(), '' FROM users
          ON CONFLICT DO NOTHING;
        INSERT INTO data_keys (user_id, version, wrapping_key, wrapped)
          SELECT user_id, 1, 'k', '' FROM users;
        INSERT INTO connections (user_id, server) SELECT user_id, 's' FROM users;
        INSERT INTO authorizations (user_id, state_hash, server, sealed, expires_at)
          SELECT user_id, '', 's', '', now() FROM users;
        INSERT INTO effects
          (user_id, thread_id, message_id, tool_call_id, run_id, fence, server, tool, key,
           arguments_sha256, state)
          SELECT user_id, thread_id, 'm', 'c', run_id, 1, 's', 't', gen_random_uuid(), '', 'done'
          FROM runs;
        INSERT INTO approvals
          (user_id, thread_id, run_id, fence, interrupt_id, kind, message_id, tool_call_id, tool,
           arguments, arguments_sha256, asked, decisions, expires_at)
          SELECT user_id, thread_id, run_id, 1, 'i', 'call', 'm', 'c', 't', '{}', '', '{}', '{}',
            now() FROM runs;
        INSERT INTO audit_references (user_id) SELECT DISTINCT user_id FROM runs
          ON CONFLICT DO NOTHING;
        INSERT INTO audit (reference, actor, action)
          SELECT reference, 'person', 'a' FROM audit_references;
        INSERT INTO audit_texts (user_id, audit_id, kind, text)
          SELECT r.user_id, a.audit_id, 'reason', ''
          FROM audit a JOIN audit_references r USING (reference);
        INSERT INTO models (model, context, output) VALUES ('m', 1000, 500);
        INSERT INTO model_users (user_id, model, vtime) SELECT user_id, 'm', 0 FROM users;
        INSERT INTO model_calls
          (user_id, call_id, run_id, fence, worker_id, model, priority, asked_at)
          SELECT user_id, gen_random_uuid(), run_id, 1, gen_random_uuid(), 'm', 0, now() FROM runs;
        """
    )
