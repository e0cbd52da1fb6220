-- What a person sees of their limits. Their own rows through the tenant door; of others' there are
-- numbers only, and only through the functions of schema `dispatch`.

CREATE OR REPLACE FUNCTION tenant.iso(p_at timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- What a person uses of each limit now, and when a window of it begins anew.
CREATE OR REPLACE FUNCTION tenant.limit_use(p_user uuid, p_limits jsonb, p_at timestamptz)
RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
  day timestamptz := date_trunc('day', p_at, 'UTC');
  month timestamptz := date_trunc('month', p_at, 'UTC');
  next_month timestamptz :=
    (date_trunc('month', p_at AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
  spacing float8 := 60 / (p_limits ->> 'requests_per_minute')::float8;
  arrival timestamptz;
BEGIN
  SELECT r.arrival INTO arrival FROM public.request_rates r
  WHERE r.user_id = p_user AND r.arrival > p_at;
  RETURN jsonb_build_object(
    'tokens_per_day', jsonb_build_object(
      'used', tenant.tokens_since(p_user, day), 'window_seconds', 86400,
      'resets_at', tenant.iso(day + interval '1 day')
    ),
    'tokens_per_month', jsonb_build_object(
      'used', tenant.tokens_since(p_user, month),
      'window_seconds', extract(epoch FROM next_month - month)::int,
      'resets_at', tenant.iso(next_month)
    ),
    'requests_per_minute', jsonb_build_object(
      'used', ceil(coalesce(extract(epoch FROM arrival - p_at), 0) / spacing - 1e-6),
      'window_seconds', 60, 'resets_at', tenant.iso(arrival)
    ),
    'threads', jsonb_build_object('used', (
      SELECT count(*) FROM public.threads t WHERE t.user_id = p_user AND t.deleted_at IS NULL
    )),
    'memory_bytes', jsonb_build_object('used', tenant.memory_bytes(p_user))
  );
END $$;

-- A person's runs that wait to begin: those that are due in the order in which they are begun, then
-- those that are scheduled. `behind`: another one of its thread comes first.
CREATE OR REPLACE FUNCTION tenant.waiting_runs(p_user uuid, p_at timestamptz, p_most int)
RETURNS jsonb
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  WITH due AS (
    SELECT r.run_id, r.thread_id, r.due_at, r.priority, r.updated_at, false AS scheduled,
      EXISTS (
        SELECT 1 FROM public.runs o
        WHERE o.user_id = r.user_id AND o.thread_id = r.thread_id
          AND o.state IN ('pending', 'running', 'waiting')
          AND (o.state <> 'pending' OR (o.due_at, o.run_id) < (r.due_at, r.run_id))
      ) AS behind
    FROM public.runs r
    WHERE r.user_id = p_user AND r.state = 'pending' AND r.due_at <= p_at
    ORDER BY r.priority DESC, r.due_at, r.run_id LIMIT p_most
  ),
  scheduled AS (
    SELECT r.run_id, r.thread_id, r.due_at, 0 AS priority, r.updated_at, true AS scheduled,
      false AS behind
    FROM public.runs r
    WHERE r.user_id = p_user AND r.state = 'pending' AND r.due_at > p_at
    ORDER BY r.due_at, r.run_id LIMIT p_most
  )
  SELECT coalesce(jsonb_agg(
    jsonb_build_object(
      'run_id', w.run_id, 'thread_id', w.thread_id, 'scheduled', w.scheduled,
      'behind', w.behind, 'due_at', CASE WHEN w.scheduled THEN tenant.iso(w.due_at) END,
      'since', tenant.iso(
        CASE WHEN w.scheduled THEN w.updated_at ELSE greatest(w.due_at, w.updated_at) END
      )
    ) ORDER BY w.scheduled, w.priority DESC, w.due_at, w.run_id
  ), '[]')
  FROM (TABLE due UNION ALL TABLE scheduled LIMIT p_most) w
$$;

-- A person's runs that have begun and wait for the model: of each, the call that is served first.
CREATE OR REPLACE FUNCTION tenant.waiting_calls(p_user uuid, p_most int) RETURNS jsonb
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  SELECT coalesce(jsonb_agg(
    jsonb_build_object(
      'call_id', w.call_id, 'model', w.model, 'run_id', w.run_id, 'thread_id', w.thread_id,
      'since', tenant.iso(w.asked_at)
    ) ORDER BY w.priority DESC, w.asked_at, w.call_id
  ), '[]')
  FROM (
    SELECT DISTINCT ON (c.run_id)
      c.call_id, c.model, c.run_id, r.thread_id, c.asked_at, c.priority
    FROM public.model_calls c JOIN public.runs r USING (user_id, run_id)
    WHERE c.user_id = p_user AND c.seat IS NULL
    ORDER BY c.run_id, c.asked_at, c.call_id LIMIT p_most
  ) w
$$;

-- The models that a person's calls can go to, or have gone to, and how many of theirs are in flight.
CREATE OR REPLACE FUNCTION tenant.models_of(p_user uuid) RETURNS jsonb
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  SELECT coalesce(jsonb_agg(
    jsonb_build_object(
      'model', m.model, 'capacity', p.capacity, 'state', p.state,
      'call_seconds', m.call_seconds, 'mine', c.mine
    ) ORDER BY m.model
  ), '[]')
  FROM public.models m
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(p.capacity) FILTER (WHERE p.state = 'open'), 0) AS capacity,
      CASE
        WHEN bool_or(p.state = 'open') THEN 'open'
        WHEN bool_or(p.state = 'failing') THEN 'failing'
        ELSE 'removed'
      END AS state
    FROM public.pools p WHERE p.model = m.model
  ) p
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE c.seat IS NOT NULL) AS mine, count(*) AS calls
    FROM public.model_calls c WHERE c.user_id = p_user AND c.model = m.model
  ) c
  WHERE p.state <> 'removed' OR c.calls > 0
$$;

-- All that a person's own rows say about their limits, at one moment.
CREATE OR REPLACE FUNCTION tenant.read_standing(p_user uuid, p_defaults jsonb, p_most int)
RETURNS jsonb
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  at timestamptz;
  limits jsonb;
  runs record;
BEGIN
  PERFORM tenant.begin_read(p_user);
  at := clock_timestamp();
  limits := tenant.limits_of(p_user, p_defaults);
  SELECT count(*) FILTER (WHERE r.state = 'running') AS running,
    count(*) FILTER (WHERE r.state = 'pending' AND r.due_at <= at) AS queued,
    count(*) FILTER (WHERE r.state = 'pending' AND r.due_at > at) AS scheduled,
    extract(epoch FROM min(r.due_at) FILTER (WHERE r.state = 'pending' AND r.due_at > at) - at)
      AS due_in
  INTO runs
  FROM public.runs r
  WHERE r.user_id = p_user AND r.state IN ('pending', 'running', 'waiting');
  RETURN jsonb_build_object(
    'plan', (SELECT u.plan FROM public.user_limits u WHERE u.user_id = p_user),
    'suspended', EXISTS (
      SELECT 1 FROM public.users u WHERE u.user_id = p_user AND u.state <> 'active'
    ),
    'limits', limits,
    'used', tenant.limit_use(p_user, limits, at),
    'running', runs.running, 'queued', runs.queued, 'scheduled', runs.scheduled,
    'due_in_seconds', runs.due_in,
    'runs', tenant.waiting_runs(p_user, at, p_most),
    'calls', tenant.waiting_calls(p_user, p_most),
    'models', tenant.models_of(p_user)
  );
END $$;

-- The place in the queue of each of a person's first `p_runs` runs that could begin now, 1 for the
-- next one, if everybody's turn comes in order of virtual time, and then round by round. Of at
-- most `p_most` others, who are named by no answer.
CREATE OR REPLACE FUNCTION dispatch.run_places(
  p_user uuid, p_model text, p_runs int, p_most int
) RETURNS int[]
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  WITH mine AS (
    SELECT greatest(q.rank, dispatch.rank_of(p_user, p_model)) AS rank, q.served_at
    FROM (SELECT) AS one LEFT JOIN public.run_queues q ON q.user_id = p_user
  ),
  queues AS (
    SELECT q.user_id, q.rank, q.served_at FROM public.run_queues q CROSS JOIN mine m
    WHERE q.claimable AND q.user_id <> p_user
      -- In the first round only those who are ahead.
      AND (p_runs > 1 OR (p_runs = 1 AND q.rank <= m.rank))
    ORDER BY q.rank, q.served_at, q.user_id LIMIT p_most
  ),
  others AS (
    SELECT w.waiting,
      (greatest(q.rank, u.vtime), q.served_at, q.user_id)
        < (m.rank, coalesce(m.served_at, 'infinity'), p_user) AS ahead
    FROM queues q CROSS JOIN mine m
    LEFT JOIN public.model_users u ON u.user_id = q.user_id AND u.model = p_model
    CROSS JOIN LATERAL (
      -- A thread has one run that is next. Whether another of it runs already is not looked at.
      SELECT count(DISTINCT r.thread_id) AS waiting FROM (
        SELECT r.thread_id FROM public.runs r
        WHERE r.user_id = q.user_id AND r.state = 'pending'
          AND r.due_at <= (SELECT clock_timestamp())
        ORDER BY r.priority DESC, r.due_at, r.run_id LIMIT 2 * p_runs
      ) r
    ) w
  )
  SELECT coalesce(array_agg(p.place ORDER BY p.i), '{}') FROM (
    SELECT i, (
      i + coalesce(sum(least(o.waiting, CASE WHEN o.ahead THEN i ELSE i - 1 END)), 0)
    )::int AS place
    FROM generate_series(1, p_runs) i LEFT JOIN others o ON true
    GROUP BY i
  ) p
$$;

-- The same of a person's calls that wait for a seat, by their ids; of each model the first
-- `p_calls`.
CREATE OR REPLACE FUNCTION dispatch.call_places(p_user uuid, p_calls int, p_most int)
RETURNS jsonb
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  WITH waiting AS (
    SELECT c.call_id, c.model, row_number() OVER (
      PARTITION BY c.model ORDER BY c.priority DESC, c.asked_at, c.call_id
    ) AS i
    FROM public.model_calls c WHERE c.user_id = p_user AND c.seat IS NULL
  ),
  mine AS (SELECT w.* FROM waiting w WHERE w.i <= p_calls),
  lanes AS (
    SELECT u.model, u.vtime, max(w.i) AS deepest
    FROM mine w JOIN public.model_users u ON u.user_id = p_user AND u.model = w.model
    GROUP BY u.model, u.vtime
  ),
  others AS (
    SELECT l.model, w.waiting, (o.vtime, o.user_id) < (l.vtime, p_user) AS ahead
    FROM lanes l
    CROSS JOIN LATERAL (
      SELECT u.user_id, u.vtime FROM public.model_users u
      WHERE u.model = l.model AND u.eligible AND u.user_id <> p_user
      ORDER BY u.vtime, u.user_id LIMIT p_most
    ) o
    CROSS JOIN LATERAL (
      SELECT count(*) AS waiting FROM (
        SELECT 1 FROM public.model_calls c
        WHERE c.user_id = o.user_id AND c.model = l.model AND c.seat IS NULL LIMIT l.deepest
      ) AS calls
    ) w
  )
  SELECT coalesce(jsonb_object_agg(p.call_id, p.place), '{}') FROM (
    SELECT m.call_id,
      m.i + coalesce(sum(least(o.waiting, CASE WHEN o.ahead THEN m.i ELSE m.i - 1 END)), 0)
        AS place
    FROM mine m LEFT JOIN others o USING (model)
    GROUP BY m.call_id, m.i
  ) p
$$;

-- How many seats of each model are in use, by anybody.
CREATE OR REPLACE FUNCTION dispatch.seats_in_use() RETURNS jsonb
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  SELECT coalesce(jsonb_object_agg(u.model, u.seats), '{}') FROM (
    SELECT c.model, count(*) AS seats FROM public.model_calls c
    WHERE c.seat IS NOT NULL GROUP BY c.model
  ) u
$$;

-- How long calls of each model have lately kept their seat, on average over everybody's.
CREATE OR REPLACE FUNCTION dispatch.call_seconds() RETURNS jsonb
LANGUAGE sql STABLE AS $$
  SELECT coalesce(jsonb_object_agg(m.model, m.call_seconds), '{}') FROM public.models m
  WHERE m.call_seconds IS NOT NULL
$$;
