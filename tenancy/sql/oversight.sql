-- What operators see of the queues, and what metrics are made of: ids, states, counts and times.
-- For the dispatch role, whose grants leave out everything that a person said. Each answer is one
-- snapshot, and a short one: a long one would keep the hot rows' old versions.

-- The pools. `in_use` are calls in flight; `cooling` are seats of dead workers' calls.
CREATE OR REPLACE FUNCTION dispatch.pool_facts() RETURNS TABLE (
  pool text, server text, model text, state text, reason text, failing_since timestamptz,
  declared_capacity int, set_capacity int, capacity int, in_use int, cooling int
)
LANGUAGE sql STABLE AS $$
  SELECT p.pool, p.server, p.model, p.state, p.reason, p.failing_since, p.declared_capacity,
    p.set_capacity, p.capacity, u.in_use, u.cooling
  FROM public.pools p
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE c.lost_at IS NULL)::int AS in_use,
      count(*) FILTER (WHERE c.lost_at IS NOT NULL)::int AS cooling
    FROM public.model_calls c WHERE c.pool = p.pool AND c.seat IS NOT NULL
  ) u
  WHERE p.state <> 'removed' OR u.in_use + u.cooling > 0
  ORDER BY p.pool
$$;

-- The models that there are pools for. `in_use` are all seats that nobody else can have, those that
-- cool down too; `vtime_spread` is in tokens.
CREATE OR REPLACE FUNCTION dispatch.model_facts() RETURNS TABLE (
  model text, capacity int, in_use int, waiting_calls int, waiting_users int,
  call_seconds float8, vtime_spread float8
)
LANGUAGE sql STABLE AS $$
  SELECT m.model, dispatch.open_seats(m.model), c.in_use, c.waiting_calls, c.waiting_users,
    m.call_seconds, (
      SELECT coalesce(max(u.vtime) - min(u.vtime), 0) / 1000.0::float8
      FROM public.model_users u WHERE u.model = m.model AND u.eligible
    )
  FROM public.models m
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE c.seat IS NOT NULL)::int AS in_use,
      count(*) FILTER (WHERE c.seat IS NULL)::int AS waiting_calls,
      (count(DISTINCT c.user_id) FILTER (WHERE c.seat IS NULL))::int AS waiting_users,
      count(*) AS present
    FROM public.model_calls c WHERE c.model = m.model
  ) c
  WHERE c.present > 0
    OR EXISTS (SELECT 1 FROM public.pools p WHERE p.model = m.model AND p.state <> 'removed')
  ORDER BY m.model
$$;

-- Everybody who has something in a queue or in flight, one row each, in one pass over the queue's
-- index. `first_due` and `first_asked`: since when their oldest run, or call, waits.
CREATE OR REPLACE FUNCTION dispatch.lines() RETURNS TABLE (
  user_id uuid, running int, queued int, scheduled int, seats int, waiting_calls int,
  first_due timestamptz, first_asked timestamptz
)
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  SELECT parts.user_id, sum(parts.running)::int, sum(parts.queued)::int,
    sum(parts.scheduled)::int, sum(parts.seats)::int, sum(parts.waiting_calls)::int,
    min(parts.first_due), min(parts.first_asked)
  FROM (
    SELECT r.user_id, 0 AS running,
      count(*) FILTER (WHERE r.due_at <= (SELECT clock_timestamp())) AS queued,
      count(*) FILTER (WHERE r.due_at > (SELECT clock_timestamp())) AS scheduled,
      0 AS seats, 0 AS waiting_calls,
      min(r.due_at) FILTER (WHERE r.due_at <= (SELECT clock_timestamp())) AS first_due,
      NULL::timestamptz AS first_asked
    FROM public.runs r WHERE r.state = 'pending' GROUP BY r.user_id
    UNION ALL
    SELECT r.user_id, count(*), 0, 0, 0, 0, NULL, NULL
    FROM public.runs r WHERE r.state = 'running' GROUP BY r.user_id
    UNION ALL
    SELECT c.user_id, 0, 0, 0, count(*) FILTER (WHERE c.seat IS NOT NULL),
      count(*) FILTER (WHERE c.seat IS NULL), NULL,
      min(c.asked_at) FILTER (WHERE c.seat IS NULL)
    FROM public.model_calls c GROUP BY c.user_id
  ) parts
  GROUP BY parts.user_id
$$;

-- Runs that wait for their person. They are in nobody's line: nothing is kept from others.
CREATE OR REPLACE FUNCTION dispatch.asking_runs() RETURNS bigint
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  SELECT count(*) FROM public.runs r WHERE r.state = 'waiting'
$$;

-- What is asked of people and still open, one row for each kind.
CREATE OR REPLACE FUNCTION dispatch.question_facts() RETURNS TABLE (
  kind text, open int, people int, oldest_seconds float8
)
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  WITH of_person AS (
    -- Counted for each first: to sort all that is open by person takes three times as long.
    SELECT a.user_id, a.kind, count(*) AS open, min(a.created_at) AS first
    FROM public.approvals a WHERE a.state = 'open' GROUP BY a.user_id, a.kind
  )
  SELECT k.kind, coalesce(sum(p.open), 0)::int, count(p.user_id)::int,
    greatest(0, coalesce(extract(epoch FROM statement_timestamp() - min(p.first)), 0))::float8
  FROM unnest(ARRAY['call', 'elicitation', 'in_doubt']) WITH ORDINALITY AS k (kind, nth)
  LEFT JOIN of_person p USING (kind)
  GROUP BY k.kind, k.nth ORDER BY k.nth
$$;

-- How far ahead of virtual time somebody's use is, in tokens: of the models they wait for and of
-- the default one, by which claims go, where they are furthest ahead. Whoever is behind is next.
CREATE OR REPLACE FUNCTION dispatch.lag_of(p_user uuid, p_model text) RETURNS float8
LANGUAGE sql STABLE AS $$
  SELECT coalesce(max(u.vtime - m.vnow), 0) / 1000.0::float8
  FROM public.model_users u JOIN public.models m USING (model)
  WHERE u.user_id = p_user AND (u.model = p_model OR EXISTS (
    SELECT 1 FROM public.model_calls c
    WHERE c.user_id = u.user_id AND c.model = u.model AND c.seat IS NULL
  ))
$$;

-- Why a run that waits is not claimed; without a run, why nothing of that person's is. The caller
-- keeps the planner from taking the few that wait for most of the table.
CREATE OR REPLACE FUNCTION dispatch.why_not_claimed(p_user uuid, p_run uuid, p_defaults jsonb)
RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
  limits jsonb := tenant.limits_of(p_user, p_defaults);
  run record;
BEGIN
  IF (limits ->> 'running')::int = 0 OR NOT EXISTS (
    SELECT 1 FROM public.users u WHERE u.user_id = p_user AND u.state = 'active'
  ) THEN
    RETURN 'suspended';
  END IF;
  SELECT r.run_id, r.thread_id, r.due_at INTO run FROM public.runs r
  WHERE r.user_id = p_user AND r.run_id = p_run;
  IF run.due_at > clock_timestamp() OR p_run IS NULL AND NOT EXISTS (
    SELECT 1 FROM public.runs r
    WHERE r.user_id = p_user AND r.state = 'pending' AND r.due_at <= (SELECT clock_timestamp())
  ) THEN
    RETURN 'scheduled';
  ELSIF EXISTS (
    SELECT 1 FROM public.runs o
    WHERE o.user_id = p_user AND o.thread_id = run.thread_id
      AND o.state IN ('pending', 'running', 'waiting') AND o.run_id <> run.run_id
      AND (o.state <> 'pending' OR (o.due_at, o.run_id) < (run.due_at, run.run_id))
  ) THEN
    RETURN 'thread';
  ELSIF (limits ->> 'running')::int <= (
    SELECT count(*) FROM public.runs r WHERE r.user_id = p_user AND r.state = 'running'
  ) THEN
    RETURN 'own_limit';
  ELSIF p_run IS NULL AND dispatch.head_of(p_user) IS NULL THEN
    RETURN 'thread';
  ELSIF EXISTS (SELECT 1 FROM tenant.exhausted_budget(p_user, limits)) THEN
    RETURN 'over_budget';
  END IF;
  RETURN 'queue';
END $$;

-- Why a person's calls of a model have no seat.
CREATE OR REPLACE FUNCTION dispatch.why_not_seated(p_user uuid, p_model text, p_defaults jsonb)
RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
  most_seats int := (dispatch.terms_of(p_user, p_model)).most_seats;
BEGIN
  RETURN CASE
    WHEN most_seats = 0 OR NOT EXISTS (
      SELECT 1 FROM public.users u WHERE u.user_id = p_user AND u.state = 'active'
    ) THEN 'suspended'
    WHEN dispatch.open_seats(p_model) = 0 THEN 'model_unavailable'
    WHEN most_seats <= (
      SELECT count(*) FROM public.model_calls c
      WHERE c.user_id = p_user AND c.model = p_model AND c.seat IS NOT NULL
    ) THEN 'own_limit'
    WHEN EXISTS (
      SELECT 1 FROM tenant.exhausted_budget(p_user, tenant.limits_of(p_user, p_defaults))
    ) THEN 'over_budget'
    ELSE 'queue'
  END;
END $$;

-- Runs that wait for their start, calls that wait for a seat: those first that wait longest.
CREATE OR REPLACE FUNCTION dispatch.waiting_longest(p_limit int, p_defaults jsonb) RETURNS TABLE (
  user_id uuid, run_id uuid, waits_for text, model text, priority int, since timestamptz,
  waited_seconds float8, why text
)
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  SELECT w.user_id, w.run_id, w.waits_for, w.model, w.priority, w.since,
    greatest(0, extract(epoch FROM statement_timestamp() - w.since))::float8,
    CASE WHEN w.model IS NULL THEN dispatch.why_not_claimed(w.user_id, w.run_id, p_defaults)
      ELSE dispatch.why_not_seated(w.user_id, w.model, p_defaults) END
  FROM (
    (SELECT c.user_id, c.run_id, 'model' AS waits_for, c.model, c.priority, c.asked_at AS since
     FROM public.model_calls c WHERE c.seat IS NULL ORDER BY c.asked_at LIMIT p_limit)
    UNION ALL
    (SELECT r.user_id, r.run_id, 'start', NULL, r.priority, r.due_at
     FROM public.runs r WHERE r.state = 'pending' ORDER BY r.due_at LIMIT p_limit)
    ORDER BY since, run_id LIMIT p_limit
  ) w
$$;

-- The queues: models, pools, how many runs there are, the people who wait longest, and for what.
-- `p_model` is the default one.
CREATE OR REPLACE FUNCTION dispatch.queue_overview(p_limit int, p_model text, p_defaults jsonb)
RETURNS jsonb
LANGUAGE sql STABLE SET timezone = 'UTC' SET enable_seqscan = off AS $$
  WITH lines AS MATERIALIZED (
    SELECT l.*, least(l.first_due, l.first_asked) AS since FROM dispatch.lines() l
  ), longest AS (
    SELECT * FROM lines ORDER BY since NULLS LAST, user_id LIMIT p_limit
  )
  SELECT jsonb_build_object(
    'at', statement_timestamp(),
    'models', coalesce((SELECT jsonb_agg(m ORDER BY m.model) FROM dispatch.model_facts() m), '[]'),
    'pools', coalesce((SELECT jsonb_agg(p ORDER BY p.pool) FROM dispatch.pool_facts() p), '[]'),
    'runs', (
      SELECT jsonb_build_object(
        'running', coalesce(sum(l.running), 0), 'queued', coalesce(sum(l.queued), 0),
        'scheduled', coalesce(sum(l.scheduled), 0), 'waiting', dispatch.asking_runs()
      ) FROM lines l
    ),
    'questions', (SELECT jsonb_agg(q) FROM dispatch.question_facts() q),
    'users', coalesce((
      SELECT jsonb_agg(jsonb_build_object(
        'user_id', l.user_id, 'plan', u.plan,
        'weight', coalesce((tenant.limits_of(l.user_id, p_defaults) ->> 'weight')::float8, 1),
        'running', l.running, 'queued', l.queued, 'seats', l.seats,
        'waiting_calls', l.waiting_calls,
        'longest_wait_seconds',
          greatest(0, coalesce(extract(epoch FROM statement_timestamp() - l.since), 0)),
        'lag', dispatch.lag_of(l.user_id, p_model),
        'why', CASE
          WHEN l.waiting_calls > 0 THEN dispatch.why_not_seated(l.user_id, (
            SELECT c.model FROM public.model_calls c
            WHERE c.user_id = l.user_id AND c.seat IS NULL ORDER BY c.asked_at LIMIT 1
          ), p_defaults)
          WHEN l.queued + l.scheduled > 0
            THEN dispatch.why_not_claimed(l.user_id, NULL, p_defaults)
        END
      ) ORDER BY l.since NULLS LAST, l.user_id)
      FROM longest l LEFT JOIN public.user_limits u USING (user_id)
    ), '[]'),
    'waiting', coalesce((
      SELECT jsonb_agg(w ORDER BY w.since, w.run_id)
      FROM dispatch.waiting_longest(p_limit, p_defaults) w
    ), '[]')
  )
$$;

-- What metrics are made of. Waits are in seconds, 0 where nobody waits; a call that only its user's
-- own limit holds back is no sign of anything, however long it waits.
CREATE OR REPLACE FUNCTION dispatch.scheduler_facts() RETURNS jsonb
LANGUAGE sql STABLE SET timezone = 'UTC' AS $$
  SELECT jsonb_build_object(
    'models', coalesce((SELECT jsonb_agg(m ORDER BY m.model) FROM dispatch.model_facts() m), '[]'),
    'pools', coalesce((SELECT jsonb_agg(p ORDER BY p.pool) FROM dispatch.pool_facts() p), '[]'),
    'components', (
      SELECT jsonb_agg(
        jsonb_build_object('component', c.component, 'available', (c.status = 'available')::int)
      ) FROM dispatch.read_components() c
    ),
    'runs', jsonb_build_object(
      'running', coalesce(sum(l.running), 0), 'queued', coalesce(sum(l.queued), 0),
      'scheduled', coalesce(sum(l.scheduled), 0), 'waiting', dispatch.asking_runs()
    ),
    'questions', (SELECT jsonb_agg(q) FROM dispatch.question_facts() q),
    'erasures', (
      SELECT jsonb_build_object(
        'open', count(*), 'failing', count(e.failure), 'oldest_seconds',
        greatest(0, coalesce(extract(epoch FROM statement_timestamp() - min(e.requested_at)), 0))
      )
      FROM public.erasures e WHERE e.step <> 'done'
    ),
    'users_waiting', count(*) FILTER (WHERE l.queued + l.waiting_calls > 0),
    'oldest_wait_seconds', jsonb_build_object(
      'start',
        greatest(0, coalesce(extract(epoch FROM statement_timestamp() - min(l.first_due)), 0)),
      'model',
        greatest(0, coalesce(extract(epoch FROM statement_timestamp() - (
          SELECT min(c.asked_at) FROM public.model_calls c
          JOIN public.model_users u USING (user_id, model)
          WHERE c.seat IS NULL AND u.eligible
        )), 0))
    )
  )
  FROM dispatch.lines() l
$$;

-- What everybody, or one person, used in a range, for the maintenance role: by the hour or the day
-- (UTC), in total, and the people who used most. NULL when there would be no bucket, or more than
-- `p_most`.
CREATE OR REPLACE FUNCTION tenant.usage_overview(
  p_from timestamptz, p_to timestamptz, p_bucket text, p_user uuid, p_limit int, p_most int
) RETURNS jsonb
LANGUAGE plpgsql STABLE SET timezone = 'UTC' AS $$
DECLARE
  span record;
BEGIN
  span := tenant.usage_range(p_from, p_to, p_bucket);
  IF span.buckets NOT BETWEEN 1 AND p_most THEN
    RETURN NULL;
  END IF;
  RETURN (
    WITH sums AS MATERIALIZED (
      SELECT h.user_id, date_trunc(p_bucket, h.hour, 'UTC') AS start,
        GROUPING(date_trunc(p_bucket, h.hour, 'UTC')) = 0 AS by_time,
        GROUPING(h.user_id) = 0 AS by_user,
        sum(h.prompt_tokens + h.output_tokens) AS tokens,
        tenant.usage_json(
          sum(h.prompt_tokens), sum(h.output_tokens), sum(h.calls), sum(h.runs),
          sum(h.tool_calls), sum(h.seat_seconds), sum(h.wait_seconds), max(h.longest_wait_seconds)
        ) AS used
      FROM public.usage_hours h
      WHERE h.hour >= span.first AND h.hour < span.last AND (p_user IS NULL OR h.user_id = p_user)
      GROUP BY GROUPING SETS ((date_trunc(p_bucket, h.hour, 'UTC')), (h.user_id), ())
    )
    SELECT jsonb_build_object(
      'from', span.first, 'to', span.last, 'bucket', p_bucket,
      'buckets', (
        SELECT jsonb_agg(
          jsonb_build_object('start', bucket.start) || coalesce(s.used, tenant.usage_json())
          ORDER BY bucket.start
        )
        FROM tenant.usage_buckets(span.first, span.last, p_bucket) AS bucket (start)
        LEFT JOIN sums s ON s.by_time AND s.start = bucket.start
      ),
      'total', (SELECT s.used FROM sums s WHERE NOT s.by_time AND NOT s.by_user),
      'users', coalesce((
        SELECT jsonb_agg(
          jsonb_build_object('user_id', u.user_id) || u.used ORDER BY u.tokens DESC, u.user_id
        )
        FROM (
          SELECT s.user_id, s.used, s.tokens FROM sums s WHERE s.by_user
          ORDER BY s.tokens DESC, s.user_id LIMIT p_limit
        ) u
      ), '[]')
    )
  );
END $$;

CREATE OR REPLACE FUNCTION tenant.usage_json(
  p_prompt numeric DEFAULT 0, p_output numeric DEFAULT 0, p_calls bigint DEFAULT 0,
  p_runs bigint DEFAULT 0, p_tool_calls bigint DEFAULT 0, p_seat_seconds float8 DEFAULT 0,
  p_wait_seconds float8 DEFAULT 0, p_longest_wait_seconds float8 DEFAULT 0
) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object(
    'prompt_tokens', coalesce(p_prompt, 0), 'output_tokens', coalesce(p_output, 0),
    'calls', coalesce(p_calls, 0), 'runs', coalesce(p_runs, 0),
    'tool_calls', coalesce(p_tool_calls, 0), 'seat_seconds', coalesce(p_seat_seconds, 0),
    'wait_seconds', coalesce(p_wait_seconds, 0),
    'longest_wait_seconds', coalesce(p_longest_wait_seconds, 0)
  )
$$;

-- The workers, and what each holds: runs, and calls of a model that have a seat.
CREATE OR REPLACE FUNCTION dispatch.worker_facts() RETURNS TABLE (
  worker_id uuid, host text, pid int, started_at timestamptz, age_seconds float8,
  lease_until timestamptz, lease_seconds float8, draining boolean, runs int, seats int
)
LANGUAGE sql STABLE AS $$
  SELECT w.worker_id, w.host, w.pid, w.started_at,
    extract(epoch FROM statement_timestamp() - w.started_at)::float8, w.lease_until,
    extract(epoch FROM w.lease_until - statement_timestamp())::float8, w.draining,
    (SELECT count(*)::int FROM public.runs r WHERE r.worker_id = w.worker_id),
    (SELECT count(*)::int FROM public.model_calls c
     WHERE c.worker_id = w.worker_id AND c.seat IS NOT NULL)
  FROM public.workers w ORDER BY w.started_at, w.worker_id
$$;
