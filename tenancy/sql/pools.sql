-- The pools: declared by the workers' settings, taken out when they fail, set by operators. For the
-- dispatch role.

-- One row per pool of a declaration.
CREATE OR REPLACE FUNCTION dispatch.read_pools(p_pools jsonb)
RETURNS TABLE (
  pool text, server text, url text, server_capacity int, model text, capacity int, context int,
  output int
)
LANGUAGE sql IMMUTABLE AS $$
  SELECT * FROM jsonb_to_recordset(p_pools) AS d (
    pool text, server text, url text, server_capacity int, model text, capacity int, context int,
    output int
  )
$$;

-- Declares all pools that there are: `[{pool, server, url, server_capacity, model, capacity,
-- context, output}]`. What is not named any more is removed: calls in flight there end as they
-- would, nothing new begins. Returns the calls that were given a seat by it.
CREATE OR REPLACE FUNCTION dispatch.declare_pools(p_pools jsonb) RETURNS uuid[]
LANGUAGE plpgsql AS $$
BEGIN
  -- Workers that start at the same time declare one after the other.
  PERFORM pg_advisory_xact_lock(hashtextextended('stoa.declare_pools', 0));
  -- First those that are there, in one order with those that are not named any more.
  PERFORM 1 FROM public.models m ORDER BY m.model FOR NO KEY UPDATE;
  INSERT INTO public.models AS m (model, context, output)
  SELECT d.model, min(d.context), min(d.output) FROM dispatch.read_pools(p_pools) d
  GROUP BY d.model ORDER BY d.model
  ON CONFLICT (model) DO UPDATE SET context = EXCLUDED.context, output = EXCLUDED.output
    WHERE (m.context, m.output) <> (EXCLUDED.context, EXCLUDED.output);
  INSERT INTO public.model_servers AS v (server, url, capacity)
  SELECT DISTINCT d.server, d.url, d.server_capacity FROM dispatch.read_pools(p_pools) d
  ON CONFLICT (server) DO UPDATE SET url = EXCLUDED.url, capacity = EXCLUDED.capacity
    WHERE (v.url, v.capacity) IS DISTINCT FROM (EXCLUDED.url, EXCLUDED.capacity);
  INSERT INTO public.pools AS p (pool, server, model, declared_capacity)
  SELECT d.pool, d.server, d.model, d.capacity FROM dispatch.read_pools(p_pools) d
  ON CONFLICT (pool) DO UPDATE
    SET server = EXCLUDED.server, model = EXCLUDED.model,
        declared_capacity = EXCLUDED.declared_capacity, resized_at = clock_timestamp(),
        state = CASE WHEN p.state = 'removed' THEN 'open' ELSE p.state END
    WHERE p.state = 'removed' OR (p.server, p.model, p.declared_capacity)
      <> (EXCLUDED.server, EXCLUDED.model, EXCLUDED.declared_capacity);
  UPDATE public.pools p
  SET state = 'removed', reason = NULL, failing_since = NULL, failures = 0, failed_for = NULL
  WHERE p.state <> 'removed'
    AND p.pool NOT IN (SELECT d.pool FROM dispatch.read_pools(p_pools) d);
  RETURN dispatch.serve_anew();
END $$;

-- Makes the seats that the pools' capacities ask for, looks at everybody who waits again, and
-- gives out what is free. The caller holds every model.
CREATE OR REPLACE FUNCTION dispatch.serve_anew() RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
  granted uuid[] := '{}';
  each text;
  waiting record;
  terms record;
BEGIN
  INSERT INTO public.seats (pool, seat)
  SELECT p.pool, n FROM public.pools p CROSS JOIN generate_series(1, p.capacity) n
  ON CONFLICT DO NOTHING;
  FOR each IN SELECT m.model FROM public.models m ORDER BY m.model LOOP
    FOR waiting IN
      SELECT DISTINCT c.user_id FROM public.model_calls c
      WHERE c.model = each AND c.seat IS NULL ORDER BY c.user_id
    LOOP
      terms := dispatch.terms_of(waiting.user_id, each);
      PERFORM dispatch.weigh_user(waiting.user_id, each, terms.weight, terms.most_seats, true);
    END LOOP;
    granted := granted || dispatch.grant_seats(each);
  END LOOP;
  RETURN granted;
END $$;

-- Sets a pool's capacity, NULL: what the settings say, and puts on record who did. False when there
-- is no such pool.
CREATE OR REPLACE FUNCTION dispatch.set_capacity(
  p_pool text, p_capacity int, p_by uuid, p_account text, p_route text,
  OUT known boolean, OUT granted uuid[]
)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_act(p_by);
  PERFORM 1 FROM public.models m ORDER BY m.model FOR NO KEY UPDATE;
  UPDATE public.pools p SET set_capacity = p_capacity, resized_at = clock_timestamp()
  WHERE p.pool = p_pool AND p.state <> 'removed';
  known := FOUND;
  IF known THEN
    PERFORM tenant.audit_act(p_by, p_account, 'pool_set', p_route, NULL, p_pool);
  END IF;
  granted := dispatch.serve_anew();
END $$;

-- Hands out pools to be probed, each to one worker at a time: those that fail, and, less often, those
-- that nobody may have called for long; NULL: none of these.
CREATE OR REPLACE FUNCTION dispatch.pools_to_probe(p_failing_seconds float8, p_open_seconds float8)
RETURNS TABLE (pool text, url text, model text, is_failing boolean)
LANGUAGE sql AS $$
  UPDATE public.pools p SET probed_at = clock_timestamp()
  FROM public.model_servers v
  WHERE v.server = p.server AND p.pool IN (
    SELECT f.pool FROM public.pools f
    WHERE (f.state = 'failing' OR f.state = 'open' AND p_open_seconds IS NOT NULL)
      AND (f.probed_at IS NULL OR f.probed_at NOT BETWEEN
        (SELECT clock_timestamp()) - make_interval(
          secs => CASE f.state WHEN 'failing' THEN p_failing_seconds ELSE p_open_seconds END
        )
        AND (SELECT clock_timestamp()))
    FOR NO KEY UPDATE SKIP LOCKED
  )
  RETURNING p.pool, v.url, p.model, p.state = 'failing';
$$;

-- Puts a pool that a probe found well back. Returns the calls that were given a seat by it.
CREATE OR REPLACE FUNCTION dispatch.reopen_pool(p_pool text) RETURNS uuid[]
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM public.models m ORDER BY m.model FOR NO KEY UPDATE;
  UPDATE public.pools p SET state = 'open', reason = NULL, failing_since = NULL, failures = 0, failed_for = NULL
  WHERE p.pool = p_pool AND p.state = 'failing';
  RETURN dispatch.serve_anew();
END $$;
