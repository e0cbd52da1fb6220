-- Seats: the right to have one model call in flight, given out by virtual token counters (Sheng et
-- al., OSDI 2024) as start-time fair queueing with depth. For the dispatch role.
--
-- Virtual time is in thousandths of a token over the weight. Locks come in the order user, run,
-- model, user of the model, call; whoever changes who is served next holds the model's row.

-- What one call of a model may cost at most, in tokens: a token of output counts twice.
CREATE OR REPLACE FUNCTION dispatch.highest_cost(p_context int, p_output int) RETURNS float8
LANGUAGE sql IMMUTABLE AS $$ SELECT p_context + 2.0::float8 * p_output $$;

CREATE OR REPLACE FUNCTION dispatch.virtual(p_cost float8, p_weight float8) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT round(p_cost * 1000 / p_weight)::bigint $$;

-- What a call is expected to cost: as much as the person's usually do, else as anybody's.
CREATE OR REPLACE FUNCTION dispatch.expected_cost(
  p_own float8, p_usual float8, p_context int, p_output int
) RETURNS float8
LANGUAGE sql IMMUTABLE AS $$
  SELECT least(
    dispatch.highest_cost(p_context, p_output),
    greatest(1, coalesce(p_own, p_usual, dispatch.highest_cost(p_context, p_output) / 2))
  )
$$;

-- How many seats of a model there are now.
CREATE OR REPLACE FUNCTION dispatch.open_seats(p_model text) RETURNS int
LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(p.capacity), 0)::int FROM public.pools p
  WHERE p.model = p_model AND p.state = 'open'
$$;

-- A person's part in a model's seats: how much, and how many at once, which is never more than
-- there are. Unless said otherwise, one seat is left for somebody else. Whoever is suspended has none.
CREATE OR REPLACE FUNCTION dispatch.terms_of(
  p_user uuid, p_model text, OUT weight float8, OUT most_seats int
)
LANGUAGE plpgsql STABLE AS $$
DECLARE
  limits jsonb := tenant.limits_of(p_user, '{}');
BEGIN
  weight := coalesce((limits ->> 'weight')::float8, 1);
  most_seats := greatest(1, dispatch.open_seats(p_model) - (NOT limits ? 'seats')::int);
  most_seats := CASE
    WHEN EXISTS (SELECT 1 FROM public.users u WHERE u.user_id = p_user AND u.state = 'active')
      THEN least(most_seats, (limits ->> 'seats')::int)
    ELSE 0
  END;
END $$;

-- Holds models, and then those of their servers that have a room of their own to give: whoever
-- serves more than one model holds all of it before anything is given out.
CREATE OR REPLACE FUNCTION dispatch.hold_models(p_models text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM public.models m WHERE m.model = ANY (p_models) ORDER BY m.model FOR NO KEY UPDATE;
  PERFORM 1 FROM public.model_servers v
  WHERE v.capacity IS NOT NULL
    AND v.server IN (SELECT p.server FROM public.pools p WHERE p.model = ANY (p_models))
  ORDER BY v.server FOR NO KEY UPDATE;
END $$;

-- Whether a seat of a model is free. Holds nothing, so somebody may have it by now.
CREATE OR REPLACE FUNCTION dispatch.has_free_seat(p_model text) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT 1 FROM public.pools p JOIN public.model_servers v USING (server)
    WHERE p.model = p_model AND p.state = 'open'
      AND p.capacity > (
        SELECT count(*) FROM public.model_calls c WHERE c.pool = p.pool AND c.seat IS NOT NULL
      )
      AND (v.capacity IS NULL OR v.capacity > (
        SELECT count(*) FROM public.model_calls c JOIN public.pools o USING (pool)
        WHERE o.server = p.server AND c.seat IS NOT NULL
      ))
  )
$$;

-- A seat that nobody has: of the pool that is least in use, on a server that has room. `most_free`:
-- there are no more than this many.
CREATE OR REPLACE FUNCTION dispatch.free_seat(
  p_model text, OUT pool text, OUT seat int, OUT most_free int
)
LANGUAGE plpgsql AS $$
DECLARE
  candidate record;
  servers_held boolean := false;
BEGIN
  FOR candidate IN
    SELECT p.pool, p.server, v.capacity AS most, free.seat,
      sum(p.capacity - u.used) OVER () AS most_free
    FROM public.pools p JOIN public.model_servers v USING (server)
    CROSS JOIN LATERAL (
      SELECT count(*) AS used FROM public.model_calls c
      WHERE c.pool = p.pool AND c.seat IS NOT NULL
    ) u
    CROSS JOIN LATERAL (
      SELECT s.seat FROM public.seats s
      WHERE s.pool = p.pool AND s.seat <= p.capacity AND u.used < p.capacity AND NOT EXISTS (
        SELECT 1 FROM public.model_calls c WHERE c.pool = s.pool AND c.seat = s.seat
      )
      ORDER BY s.seat LIMIT 1
    ) free
    WHERE p.model = p_model AND p.state = 'open' AND p.capacity > 0
    ORDER BY u.used::float8 / p.capacity, p.pool
  LOOP
    IF candidate.most IS NOT NULL THEN
      -- Other models have seats on it too. All of this model's servers at once, so that whoever
      -- holds several has taken them in one order.
      IF NOT servers_held THEN
        PERFORM dispatch.hold_models(ARRAY[p_model]);
        servers_held := true;
      END IF;
      CONTINUE WHEN candidate.most <= (
        SELECT count(*) FROM public.model_calls c JOIN public.pools p USING (pool)
        WHERE p.server = candidate.server AND c.seat IS NOT NULL
      );
    END IF;
    pool := candidate.pool;
    seat := candidate.seat;
    most_free := candidate.most_free;
    RETURN;
  END LOOP;
  pool := NULL;
  seat := NULL;
  most_free := 0;
END $$;

-- Brings up to date whether a person can be given a seat. `p_lifted`: something that held them
-- back may just have gone, so of the time that they could not be served only as much counts as
-- their seats can hold, of calls such as theirs usually are. `p_charge` is what is added to their
-- virtual time, `p_cost` what a call of theirs has cost. The caller holds the model.
CREATE OR REPLACE FUNCTION dispatch.weigh_user(
  p_user uuid, p_model text, p_weight float8, p_most_seats int, p_lifted boolean,
  p_charge bigint DEFAULT 0, p_cost float8 DEFAULT 0
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE public.model_users u
  SET eligible = now.can,
      vtime = CASE WHEN p_lifted AND now.can AND NOT u.eligible THEN greatest(
        u.vtime + p_charge,
        m.vnow - dispatch.virtual(
          p_most_seats * dispatch.expected_cost(u.estimate, m.estimate, m.context, m.output),
          p_weight
        )
      ) ELSE u.vtime + p_charge END,
      estimate = CASE WHEN p_cost > 0 THEN coalesce(u.estimate * 0.7 + p_cost * 0.3, p_cost)
                 ELSE u.estimate END
  FROM public.models m, (
    SELECT (
      SELECT count(*) FROM public.model_calls c
      WHERE c.user_id = p_user AND c.model = p_model AND c.seat IS NOT NULL
    ) < p_most_seats AND EXISTS (
      SELECT 1 FROM public.model_calls c
      WHERE c.user_id = p_user AND c.model = p_model AND c.seat IS NULL
    ) AS can
  ) now
  WHERE u.user_id = p_user AND u.model = p_model AND m.model = p_model
    AND (u.eligible <> now.can OR p_charge <> 0 OR p_cost > 0);
END $$;

-- Gives the free seats of a model to those who are next, one after the other. Returns the calls
-- that were given one, with what there is to know of them. The caller holds the model.
CREATE OR REPLACE FUNCTION dispatch.grant_seats(p_model text) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
  granted uuid[] := '{}';
  next_user record;
  place record;
  terms record;
  next_call uuid;
  expected float8;
  charge bigint;
  passed_over uuid[] := '{}';
BEGIN
  LOOP
    SELECT u.user_id, u.vtime, u.estimate, m.estimate AS usual, m.context, m.output
    INTO next_user
    FROM public.model_users u JOIN public.models m USING (model)
    WHERE u.model = p_model AND u.eligible AND u.user_id <> ALL (passed_over)
    ORDER BY u.vtime, u.user_id LIMIT 1;
    EXIT WHEN NOT FOUND;
    place := dispatch.free_seat(p_model);
    EXIT WHEN place.seat IS NULL;
    terms := dispatch.terms_of(next_user.user_id, p_model);
    expected := dispatch.expected_cost(
      next_user.estimate, next_user.usual, next_user.context, next_user.output
    );
    charge := dispatch.virtual(expected, terms.weight);
    next_call := NULL;
    -- One whose run is just being deleted is not waited for.
    UPDATE public.model_calls c
    SET pool = place.pool, seat = place.seat, granted_at = clock_timestamp(),
        estimate = expected, charged = charge, weight = terms.weight
    WHERE c.user_id = next_user.user_id AND c.call_id = (
      SELECT n.call_id FROM public.model_calls n
      WHERE n.user_id = next_user.user_id AND n.model = p_model AND n.seat IS NULL
      ORDER BY n.priority DESC, n.asked_at, n.call_id LIMIT 1
      FOR NO KEY UPDATE SKIP LOCKED
    ) AND (
      SELECT count(*) FROM public.model_calls h
      WHERE h.user_id = next_user.user_id AND h.model = p_model AND h.seat IS NOT NULL
    ) < terms.most_seats
    RETURNING c.call_id INTO next_call;
    IF next_call IS NULL THEN
      passed_over := passed_over || next_user.user_id;
      charge := 0;
    ELSE
      granted := granted || next_call;
      UPDATE public.models m SET vnow = next_user.vtime
      WHERE m.model = p_model AND m.vnow < next_user.vtime;
    END IF;
    PERFORM dispatch.weigh_user(
      next_user.user_id, p_model, terms.weight, terms.most_seats, false, charge
    );
    EXIT WHEN place.most_free = 1 AND next_call IS NOT NULL;
  END LOOP;
  RETURN granted;
END $$;

-- Asks for a seat for one call of a run. Says `taken`, with the pool's name and address; `waiting`;
-- `no_model`, if no pool has it; or which token budget is used up. `granted` are other calls that
-- were given a seat meanwhile. Asking again for the same call changes nothing but takes up a seat
-- that it was given.
CREATE OR REPLACE FUNCTION dispatch.take_seat(
  p_user uuid, p_call uuid, p_run uuid, p_fence bigint, p_worker uuid, p_model text,
  p_defaults jsonb
) RETURNS TABLE (
  outcome text, pool text, url text, context int, output int, reason text,
  resets_at timestamptz, granted uuid[]
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  run record;
  budget record;
  terms record;
  lane record;
  was_empty boolean;
BEGIN
  granted := '{}';
  SELECT m.vnow,
    EXISTS (
      SELECT 1 FROM public.model_users u WHERE u.user_id = p_user AND u.model = p_model
    ) AS is_known,
    EXISTS (
      SELECT 1 FROM public.users u WHERE u.user_id = p_user AND u.state = 'active'
    ) AS is_active
  INTO lane FROM public.models m
  WHERE m.model = p_model AND EXISTS (
    SELECT 1 FROM public.pools p WHERE p.model = m.model AND p.state <> 'removed'
  );
  IF NOT FOUND THEN
    outcome := 'no_model';
    RETURN NEXT;
    RETURN;
  ELSIF NOT lane.is_active THEN
    RAISE EXCEPTION 'this user cannot be served' USING ERRCODE = 'ST003';
  ELSIF NOT lane.is_known THEN
    -- Before any other lock: a foreign key looks at the row of the user's queue.
    BEGIN
      INSERT INTO public.model_users (user_id, model, vtime) VALUES (p_user, p_model, lane.vnow)
      ON CONFLICT (user_id, model) DO NOTHING;
    EXCEPTION WHEN foreign_key_violation THEN
      RAISE EXCEPTION 'this user cannot be served' USING ERRCODE = 'ST003';
    END;
  END IF;
  SELECT r.priority INTO run FROM public.runs r
  WHERE r.user_id = p_user AND r.run_id = p_run AND r.fence = p_fence AND r.state = 'running'
    AND r.worker_id = p_worker
    AND EXISTS (
      SELECT 1 FROM public.workers w
      WHERE w.worker_id = r.worker_id AND w.lease_until > (SELECT clock_timestamp())
    )
  FOR SHARE OF r;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'ST001';
  END IF;
  SELECT * INTO budget FROM tenant.exhausted_budget(
    p_user, tenant.limits_of(p_user, p_defaults)
  );
  IF FOUND THEN
    outcome := budget.name;
    resets_at := budget.resets_at;
    RETURN NEXT;
    RETURN;
  END IF;
  SELECT m.vnow INTO lane FROM public.models m WHERE m.model = p_model FOR NO KEY UPDATE;
  was_empty := NOT EXISTS (
    SELECT 1 FROM public.model_calls c
    WHERE c.user_id = p_user AND c.model = p_model AND c.seat IS NULL
  );
  INSERT INTO public.model_calls (
    user_id, call_id, run_id, fence, worker_id, model, priority, asked_at
  )
  VALUES (p_user, p_call, p_run, p_fence, p_worker, p_model, run.priority, clock_timestamp())
  ON CONFLICT (user_id, call_id) DO NOTHING;
  -- One more behind others that wait changes nothing about who is next.
  IF FOUND AND was_empty THEN
    -- No credit for having been idle.
    UPDATE public.model_users u SET vtime = lane.vnow
    WHERE u.user_id = p_user AND u.model = p_model AND u.vtime < lane.vnow;
    terms := dispatch.terms_of(p_user, p_model);
    PERFORM dispatch.weigh_user(p_user, p_model, terms.weight, terms.most_seats, false);
    granted := array_remove(dispatch.grant_seats(p_model), p_call);
  END IF;
  RETURN QUERY
  SELECT t.outcome, t.pool, t.url, t.context, t.output, t.reason, NULL::timestamptz, granted
  FROM dispatch.take_up(p_user, p_call, NULL) t;
  -- A place in the queue that a crash forgets is asked for anew; others do not wait for the disk.
  PERFORM set_config('synchronous_commit', 'off', true)
  FROM public.model_calls c
  WHERE c.user_id = p_user AND c.call_id = p_call AND c.taken_at IS NULL;
END $$;

-- Takes up the seat that a call was given. `waiting`: it has none yet; `out`: it waits, and no pool
-- with its model works, and why; `no_model`: there is no such pool any more; `gone`: it must ask
-- anew; or which token budget was used up while it waited: then its seat is to be given back. With
-- no `p_defaults` no budget is looked at.
CREATE OR REPLACE FUNCTION dispatch.take_up(p_user uuid, p_call uuid, p_defaults jsonb)
RETURNS TABLE (
  outcome text, pool text, url text, context int, output int, reason text, resets_at timestamptz
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  SELECT b.name, b.resets_at INTO outcome, resets_at
  FROM public.model_calls c CROSS JOIN LATERAL tenant.exhausted_budget(
    p_user, tenant.limits_of(p_user, p_defaults)
  ) b
  WHERE c.user_id = p_user AND c.call_id = p_call AND c.seat IS NOT NULL AND c.taken_at IS NULL;
  IF FOUND THEN
    RETURN NEXT;
    RETURN;
  END IF;
  RETURN QUERY
  UPDATE public.model_calls c SET taken_at = coalesce(c.taken_at, clock_timestamp())
  FROM public.pools p JOIN public.model_servers v USING (server) JOIN public.models m USING (model)
  WHERE c.user_id = p_user AND c.call_id = p_call AND p.pool = c.pool AND p.model = c.model
    AND c.lost_at IS NULL
  RETURNING 'taken', p.pool, v.url, m.context, m.output, NULL, NULL::timestamptz;
  IF NOT FOUND THEN
    SELECT CASE
      WHEN count(p.pool) = 0 THEN 'no_model'
      WHEN count(*) FILTER (WHERE p.state = 'open') = 0 THEN 'out'
      ELSE 'waiting'
    END, CASE
      -- Where one lacks the model and another cannot be reached, it may be there.
      WHEN count(DISTINCT p.reason) = 1 THEN min(p.reason) ELSE 'unreachable'
    END INTO outcome, reason
    FROM public.model_calls c
    LEFT JOIN public.pools p ON p.model = c.model AND p.state <> 'removed'
    WHERE c.user_id = p_user AND c.call_id = p_call AND c.seat IS NULL
    GROUP BY c.call_id;
    outcome := coalesce(outcome, 'gone');
    RETURN NEXT;
  END IF;
END $$;

-- Ends a call, however far it came: its seat is free, its tokens are charged, once, and whoever is
-- next has the seat. A call that still waited leaves the queue. `p_failure` is what went wrong with
-- the pool, if that was it: `unreachable` and `model_missing` take it out at once, others the third
-- time in a row, or the sixth where all were one person's. False when it was settled before, or there was no such call.
-- Nobody waits for the disk with the model in hand: whoever settles has it flushed afterwards, and
-- settles again if that fails.
CREATE OR REPLACE FUNCTION dispatch.settle_call(
  p_user uuid, p_call uuid, p_model text, p_prompt int, p_output int, p_failure text,
  OUT settled boolean, OUT granted uuid[], OUT others text[]
)
LANGUAGE plpgsql AS $$
DECLARE
  this_hour timestamptz := date_trunc('hour', clock_timestamp(), 'UTC');
  call record;
  cost float8 := greatest(0, p_prompt) + 2.0 * greatest(0, p_output);
  highest float8;
  charge bigint;
  has_hour boolean;
  place record;
  terms record;
  held_seconds float8;
  waited float8;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  settled := false;
  granted := '{}';
  others := '{}';
  SELECT EXISTS (
    SELECT 1 FROM public.usage_hours h
    WHERE h.user_id = p_user AND h.hour = this_hour AND h.model = p_model
  ) INTO has_hour
  FROM public.model_calls c WHERE c.user_id = p_user AND c.call_id = p_call;
  IF NOT FOUND THEN
    RETURN;
  ELSIF NOT has_hour THEN
    -- Before any other lock: a foreign key looks at the user's row.
    BEGIN
      INSERT INTO public.usage_hours (user_id, hour, model) VALUES (p_user, this_hour, p_model)
      ON CONFLICT (user_id, hour, model) DO NOTHING;
    EXCEPTION WHEN foreign_key_violation THEN
      RETURN;  -- the person is gone, and the call with them
    END;
  END IF;
  SELECT dispatch.highest_cost(m.context, m.output) INTO highest
  FROM public.models m WHERE m.model = p_model FOR NO KEY UPDATE;
  -- A server that says more than it can have done keeps nobody from their turn.
  cost := least(cost, highest);
  DELETE FROM public.model_calls c WHERE c.user_id = p_user AND c.call_id = p_call
  RETURNING c.pool, c.seat, c.asked_at, c.granted_at, c.taken_at, c.charged, c.estimate, c.weight
  INTO call;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  settled := true;
  terms := dispatch.terms_of(p_user, p_model);
  IF call.seat IS NULL THEN
    PERFORM dispatch.weigh_user(p_user, p_model, terms.weight, terms.most_seats, true);
  ELSE
    held_seconds := greatest(0, extract(epoch FROM clock_timestamp() - call.granted_at));
    waited := greatest(0, extract(epoch FROM call.granted_at - call.asked_at));
    -- What made the server fail is no cheaper than what it answers: its estimate stands.
    charge := dispatch.virtual(
      CASE WHEN p_failure = 'failed' THEN greatest(cost, call.estimate) ELSE cost END, call.weight
    ) - call.charged;
    PERFORM dispatch.weigh_user(
      p_user, p_model, terms.weight, terms.most_seats, true, charge, cost
    );
    UPDATE public.models m
    SET estimate = CASE WHEN cost > 0 THEN coalesce(m.estimate * 0.9 + cost * 0.1, cost)
                   ELSE m.estimate END,
        call_seconds = coalesce(m.call_seconds * 0.9 + held_seconds * 0.1, held_seconds)
    WHERE m.model = p_model;
    UPDATE public.usage_hours h
    SET calls = h.calls + (call.taken_at IS NOT NULL)::int,
        prompt_tokens = h.prompt_tokens + greatest(0, p_prompt),
        output_tokens = h.output_tokens + greatest(0, p_output),
        seat_seconds = h.seat_seconds + held_seconds,
        wait_seconds = h.wait_seconds + waited,
        longest_wait_seconds = greatest(h.longest_wait_seconds, waited)
    WHERE h.user_id = p_user AND h.hour = this_hour AND h.model = p_model;
    SELECT p.failures, v.capacity AS server_capacity INTO place
    FROM public.pools p JOIN public.model_servers v USING (server) WHERE p.pool = call.pool;
    IF p_failure IS NOT NULL OR place.failures > 0 THEN
      PERFORM dispatch.note_outcome(call.pool, p_user, p_failure, cost > 0);
    END IF;
    IF place.server_capacity IS NOT NULL THEN
      others := dispatch.neighbours(call.pool);
    END IF;
  END IF;
  granted := dispatch.grant_seats(p_model);
END $$;

-- Remembers how a pool fares: what fails is taken out until a probe finds it well. What fails for one
-- person only may be what they ask, so it takes twice as many in a row as where several meet it.
CREATE OR REPLACE FUNCTION dispatch.note_outcome(
  p_pool text, p_user uuid, p_failure text, p_worked boolean
) RETURNS void
LANGUAGE sql AS $$
  UPDATE public.pools p SET failures = 0, failed_for = NULL
  WHERE p.pool = p_pool AND p_failure IS NULL AND p_worked AND p.failures > 0;
  UPDATE public.pools p
  SET failures = seen.failures, failed_for = seen.digest, reason = p_failure,
      state = CASE WHEN seen.is_out THEN 'failing' ELSE 'open' END,
      failing_since = CASE WHEN seen.is_out THEN clock_timestamp() END
  FROM (
    SELECT o.pool, o.failures + 1 AS failures, n.digest,
      p_failure IN ('unreachable', 'model_missing')
        OR o.failures >= CASE WHEN n.digest = '' THEN 2 ELSE 5 END AS is_out
    FROM public.pools o, LATERAL (
      -- Whose it was without saying who, and nothing where it was several people's.
      SELECT CASE WHEN coalesce(o.failed_for, sha256(uuid_send(p_user))) = sha256(uuid_send(p_user))
        THEN sha256(uuid_send(p_user)) ELSE '' END AS digest
    ) n
  ) seen
  WHERE p.pool = p_pool AND seen.pool = p.pool AND p_failure IS NOT NULL AND p.state = 'open';
$$;

-- Other models with seats on the same server, where there are calls that wait and the server's own
-- room may have been what they wait for.
CREATE OR REPLACE FUNCTION dispatch.neighbours(p_pool text) RETURNS text[]
LANGUAGE sql STABLE AS $$
  SELECT coalesce(array_agg(DISTINCT o.model), '{}')
  FROM public.pools p
  JOIN public.model_servers v ON v.server = p.server AND v.capacity IS NOT NULL
  JOIN public.pools o ON o.server = p.server AND o.model <> p.model
  WHERE p.pool = p_pool
    AND EXISTS (SELECT 1 FROM public.model_users u WHERE u.model = o.model AND u.eligible)
$$;

-- Gives out what seats of a model are free. Returns the calls that were given one.
CREATE OR REPLACE FUNCTION dispatch.serve_model(p_model text) RETURNS uuid[]
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM public.models m WHERE m.model = p_model FOR NO KEY UPDATE;
  RETURN dispatch.grant_seats(p_model);
END $$;
