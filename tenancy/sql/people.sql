-- What operators see of people: ids, states, times, counts and sizes. For the maintenance role, whose
-- grants leave out everything that a person said, their names and addresses among it.

-- A person, in numbers. `last_seen_at` is to the minute, of requests that are counted; `bytes` are
-- those of events and of state, which is where a conversation lies.
CREATE OR REPLACE FUNCTION tenant.person_json(p_user uuid) RETURNS jsonb
LANGUAGE sql STABLE SET timezone = 'UTC' AS $$
  SELECT jsonb_build_object(
    'user_id', u.user_id, 'state', u.state, 'state_at', u.state_at, 'created_at', u.created_at,
    'last_seen_at', (
      SELECT least(r.arrival, statement_timestamp()) FROM public.request_rates r
      WHERE r.user_id = u.user_id
    ),
    'threads', (
      SELECT count(*) FROM public.threads t WHERE t.user_id = u.user_id AND t.deleted_at IS NULL
    ),
    'runs', (SELECT count(*) FROM public.runs r WHERE r.user_id = u.user_id),
    'open_runs', (
      SELECT count(*) FROM public.runs r
      WHERE r.user_id = u.user_id AND r.state IN ('pending', 'running', 'waiting')
    ),
    'waiting_approvals', (
      SELECT count(*) FROM public.approvals a WHERE a.user_id = u.user_id AND a.state = 'open'
    ),
    'bytes', (
      SELECT sum(s.bytes) FROM tenant.person_sizes(u.user_id) s
    )
  )
  FROM public.users u WHERE u.user_id = p_user
$$;

-- How much is kept of a person, of the kinds that grow.
CREATE OR REPLACE FUNCTION tenant.person_sizes(p_user uuid) RETURNS TABLE (name text, bytes bigint)
LANGUAGE sql STABLE AS $$
  SELECT 'run_events', coalesce(sum(e.size), 0)::bigint
  FROM public.run_events e WHERE e.user_id = p_user
  UNION ALL
  SELECT 'checkpoint_blobs', coalesce(sum(b.size), 0)::bigint
  FROM public.checkpoint_blobs b WHERE b.user_id = p_user
  UNION ALL
  SELECT 'checkpoint_writes', coalesce(sum(w.size), 0)::bigint
  FROM public.checkpoint_writes w WHERE w.user_id = p_user
$$;

-- A page of people, in a state where one is asked for, and how many there are: newest first, or who was
-- seen last.
CREATE OR REPLACE FUNCTION tenant.people(
  p_state text, p_sort text, p_limit int, p_offset int
) RETURNS jsonb
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  ids uuid[];
BEGIN
  IF p_sort = 'last_seen_at' THEN
    ids := ARRAY(
      SELECT u.user_id FROM public.users u LEFT JOIN public.request_rates r USING (user_id)
      WHERE p_state IS NULL OR u.state = p_state::public.user_state
      ORDER BY r.arrival DESC NULLS LAST, u.user_id DESC LIMIT p_limit OFFSET p_offset
    );
  ELSE
    ids := ARRAY(
      SELECT u.user_id FROM public.users u
      WHERE p_state IS NULL OR u.state = p_state::public.user_state
      ORDER BY u.created_at DESC, u.user_id DESC LIMIT p_limit OFFSET p_offset
    );
  END IF;
  RETURN jsonb_build_object(
    'total', (
      SELECT count(*) FROM public.users u
      WHERE p_state IS NULL OR u.state = p_state::public.user_state
    ),
    'users', coalesce((
      SELECT jsonb_agg(tenant.person_json(id.user_id) ORDER BY id.nth)
      FROM unnest(ids) WITH ORDINALITY AS id (user_id, nth)
    ), '[]')
  );
END $$;

-- All of a person that an operator may know; null where there is nobody. `p_defaults` are the service's
-- own limits.
CREATE OR REPLACE FUNCTION tenant.person(p_user uuid, p_defaults jsonb) RETURNS jsonb
LANGUAGE sql STABLE SET timezone = 'UTC' AS $$
  SELECT tenant.person_json(p_user) || jsonb_build_object(
    'rows', tenant.count_rows(p_user),
    'sizes', (SELECT jsonb_object_agg(s.name, s.bytes) FROM tenant.person_sizes(p_user) s),
    'plan', l.plan, 'limits', coalesce(l.limits, '{}'),
    'effective', tenant.limits_of(p_user, p_defaults), 'updated_at', l.updated_at,
    'used_today', tenant.used_since(p_user, date_trunc('day', statement_timestamp(), 'UTC')),
    'used_this_month', tenant.used_since(p_user, date_trunc('month', statement_timestamp(), 'UTC')),
    'erasure_id', (SELECT e.erasure_id FROM public.erasures e WHERE e.subject = p_user)
  )
  FROM (SELECT) AS one LEFT JOIN public.user_limits l ON l.user_id = p_user
$$;

-- What a person has used since a moment, whole hours.
CREATE OR REPLACE FUNCTION tenant.used_since(p_user uuid, p_since timestamptz) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  SELECT tenant.usage_json(
    sum(h.prompt_tokens), sum(h.output_tokens), sum(h.calls), sum(h.runs), sum(h.tool_calls),
    sum(h.seat_seconds), sum(h.wait_seconds), max(h.longest_wait_seconds)
  )
  FROM public.usage_hours h WHERE h.user_id = p_user AND h.hour >= p_since
$$;
