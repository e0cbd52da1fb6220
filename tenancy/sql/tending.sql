-- What time brings to the seats: who is late, and whose calls are nobody's any more. For the dispatch
-- role. Locks come in the order of `seats.sql`.

-- Calls of a model that time has run out for: not taken up in time; cooled down; or nobody's any
-- more. Of those that wait, a dead worker's: one that was only forgotten is not taken up.
CREATE OR REPLACE FUNCTION dispatch.overdue_calls(
  p_model text, p_cooldown_seconds float8, p_take_up_seconds float8
) RETURNS TABLE (user_id uuid, call_id uuid)
LANGUAGE sql STABLE AS $$
  SELECT c.user_id, c.call_id
  FROM public.model_calls c
  LEFT JOIN public.workers w
    ON w.worker_id = c.worker_id AND w.lease_until > (SELECT clock_timestamp())
  -- What lies ahead is of a clock that was set back since.
  WHERE c.model = p_model AND CASE
    WHEN c.lost_at IS NOT NULL THEN
      c.lost_at NOT BETWEEN
        (SELECT clock_timestamp()) - make_interval(secs => p_cooldown_seconds)
        AND (SELECT clock_timestamp())
    WHEN w.worker_id IS NULL THEN true
    WHEN c.seat IS NULL THEN false
    WHEN c.taken_at IS NULL THEN
      c.granted_at NOT BETWEEN
        (SELECT clock_timestamp()) - make_interval(secs => p_take_up_seconds)
        AND (SELECT clock_timestamp())
    ELSE NOT EXISTS (
      SELECT 1 FROM public.runs r
      WHERE r.user_id = c.user_id AND r.run_id = c.run_id AND r.fence = c.fence
        AND r.state = 'running'
    )
  END
$$;

-- What time brings: a seat that was not taken up goes to the next, that of a run that nobody has
-- any more is free after a cool-down (its model may still be speaking) and what it had not earned
-- is given back, calls that nobody waits for leave the queue. Returns the calls that were given a
-- seat. Does nothing, and locks nothing, where nothing is to be done.
CREATE OR REPLACE FUNCTION dispatch.tend_seats(p_cooldown_seconds float8, p_take_up_seconds float8)
RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
  granted uuid[] := '{}';
  busy text[] := ARRAY(
    SELECT m.model FROM public.models m
    WHERE EXISTS (
      SELECT 1 FROM dispatch.overdue_calls(m.model, p_cooldown_seconds, p_take_up_seconds)
    ) OR (
      EXISTS (SELECT 1 FROM public.model_users u WHERE u.model = m.model AND u.eligible)
      AND dispatch.has_free_seat(m.model)
    )
    ORDER BY m.model
  );
  each text;
BEGIN
  IF cardinality(busy) > 0 THEN
    PERFORM dispatch.hold_models(busy);
    FOREACH each IN ARRAY busy LOOP
      PERFORM dispatch.end_overdue(each, p_cooldown_seconds, p_take_up_seconds);
    END LOOP;
    -- A server's room may have come free through another of its models.
    FOREACH each IN ARRAY busy LOOP
      granted := granted || dispatch.grant_seats(each);
    END LOOP;
  END IF;
  RETURN granted;
END $$;

-- Takes overdue calls' seats from them, or lets them cool down. The caller holds the model.
CREATE OR REPLACE FUNCTION dispatch.end_overdue(
  p_model text, p_cooldown_seconds float8, p_take_up_seconds float8
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  call record;
  terms record;
BEGIN
  FOR call IN
    SELECT c.user_id, c.call_id, c.taken_at, c.lost_at, c.charged
    FROM public.model_calls c
    WHERE (c.user_id, c.call_id) IN (
      SELECT o.user_id, o.call_id
      FROM dispatch.overdue_calls(p_model, p_cooldown_seconds, p_take_up_seconds) o
    )
    ORDER BY c.user_id, c.call_id
    FOR UPDATE SKIP LOCKED
  LOOP
    -- It may have been taken up just before it was held.
    CONTINUE WHEN NOT EXISTS (
      SELECT 1 FROM dispatch.overdue_calls(p_model, p_cooldown_seconds, p_take_up_seconds) o
      WHERE o.user_id = call.user_id AND o.call_id = call.call_id
    );
    -- Nothing is known of what it used.
    UPDATE public.model_users u SET vtime = u.vtime - call.charged
    WHERE u.user_id = call.user_id AND u.model = p_model AND call.charged > 0;
    IF call.taken_at IS NOT NULL AND call.lost_at IS NULL THEN
      UPDATE public.model_calls c SET lost_at = clock_timestamp(), charged = 0
      WHERE c.user_id = call.user_id AND c.call_id = call.call_id;
    ELSE
      DELETE FROM public.model_calls c
      WHERE c.user_id = call.user_id AND c.call_id = call.call_id;
    END IF;
    terms := dispatch.terms_of(call.user_id, p_model);
    PERFORM dispatch.weigh_user(call.user_id, p_model, terms.weight, terms.most_seats, true);
  END LOOP;
END $$;
