-- What became of a run, for an operator: found by its id alone, told without a word of content.
-- Runs with the caller's rights: all of it is the maintenance role's to see, and only that.

CREATE OR REPLACE FUNCTION tenant.inspect_run(p_run uuid) RETURNS jsonb
LANGUAGE sql STABLE SET timezone = 'UTC' AS $$
  SELECT jsonb_build_object(
    'run', jsonb_build_object(
      'run_id', r.run_id, 'user_id', r.user_id, 'thread_id', r.thread_id, 'graph_id', r.graph_id,
      'request_id', r.request_id,
      'state', r.state, 'error_code', r.error_code, 'multitask_strategy', r.multitask_strategy,
      'fence', r.fence, 'attempt', r.attempt, 'attempts_spent', r.attempts_spent,
      'active_seconds', r.active_seconds,
      'created_at', r.created_at, 'claimed_at', r.claimed_at, 'ended_at', r.ended_at,
      'cancel_requested_at', r.cancel_requested_at, 'cancel_action', r.cancel_action,
      'pruned_through', r.pruned_through, 'pruned_at', r.pruned_at,
      'log_dropped_at', r.log_dropped_at
    ),
    'lease', (
      SELECT jsonb_build_object(
        'worker_id', w.worker_id, 'host', w.host, 'until', w.lease_until,
        'over', w.lease_until <= (SELECT clock_timestamp()), 'draining', w.draining
      )
      FROM public.workers w WHERE w.worker_id = r.worker_id
    ),
    'attempts', coalesce((
      SELECT jsonb_agg(jsonb_build_object(
        'attempt', a.attempt, 'fence', a.fence, 'worker_id', a.worker_id, 'host', a.host,
        'claimed_at', a.claimed_at, 'ended_at', a.ended_at, 'ended_by', a.ended_by
      ) ORDER BY a.fence)
      FROM public.run_attempts a
      WHERE a.user_id = r.user_id AND a.run_id = r.run_id
    ), '[]'),
    -- Neither what is asked nor of which server: people's own have names of theirs.
    'questions', coalesce((
      SELECT jsonb_agg(jsonb_build_object(
        'approval_id', a.approval_id, 'kind', a.kind, 'state', a.state, 'decision', a.decision,
        'asked_at', a.created_at, 'expires_at', a.expires_at, 'decided_at', a.decided_at
      ) ORDER BY a.created_at, a.approval_id)
      FROM public.approvals a
      WHERE a.user_id = r.user_id AND a.run_id = r.run_id
    ), '[]'),
    'calls', (
      SELECT jsonb_build_object(
        'begun', count(*), 'sent', coalesce(sum(e.sent), 0),
        'without_outcome', count(*) FILTER (WHERE e.state = 'started'),
        'late', count(*) FILTER (WHERE e.late_at IS NOT NULL)
      )
      FROM public.effects e
      WHERE e.user_id = r.user_id AND e.run_id = r.run_id
    ),
    'checkpoints', (
      SELECT jsonb_build_object(
        'root', count(*) FILTER (WHERE c.checkpoint_ns = ''),
        'sub', count(*) FILTER (WHERE c.checkpoint_ns <> ''),
        'namespaces', count(DISTINCT c.checkpoint_ns) FILTER (WHERE c.checkpoint_ns <> ''),
        'root_ids', coalesce(
          jsonb_agg(c.checkpoint_id ORDER BY c.checkpoint_id) FILTER (WHERE c.checkpoint_ns = ''),
          '[]'
        )
      )
      FROM public.checkpoints c
      WHERE c.user_id = r.user_id AND c.thread_id = r.thread_id AND c.run_id = r.run_id
    ),
    'events', coalesce((
      SELECT jsonb_agg(to_jsonb(k) ORDER BY k.first_seq)
      FROM (
        -- What follows is the name of a node.
        SELECT split_part(e.event, '|', 1) AS kind, count(*) AS count, sum(e.size) AS bytes,
          min(e.seq) AS first_seq, max(e.seq) AS last_seq,
          min(e.created_at) AS first_at, max(e.created_at) AS last_at
        FROM public.run_events e
        WHERE e.user_id = r.user_id AND e.run_id = r.run_id
        GROUP BY 1
      ) k
    ), '[]')
  )
  FROM public.runs r WHERE r.run_id::text = p_run::text;  -- as the index has it
$$;
