-- Whether seats, leases and queues agree. For the dispatch role. Everything here looks only, but for
-- `put_in_order`.

-- One row per disagreement that does not pass by itself; nothing else is ever returned of a healthy
-- service at rest, and under load nothing that is there a moment later. `subject` is the call, or the
-- person.
--   call_left      a call that waits, though its worker is dead
--   seat_kept      a seat that a call of nobody's has, longer than it may cool down
--   seat_shared    a seat that two calls have
--   seat_too_many  a seat that was given beyond its pool's capacity
--   call_passed    a call that waits below its user's cap while a seat is free, and nobody knows
--   seat_idle      a seat is free, and somebody next in line
--   queue_missing  runs that wait, of a person without a queue
--   queue_asleep   a run that could be claimed, or will be due, and whose queue would not be looked at
CREATE OR REPLACE FUNCTION dispatch.check_agreement(
  p_cooldown_seconds float8 DEFAULT 10, p_defaults jsonb DEFAULT '{}'
) RETURNS TABLE (kind text, user_id uuid, model text, subject uuid)
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  SELECT * FROM dispatch.disagreeing_calls(p_cooldown_seconds)
  UNION ALL SELECT * FROM dispatch.unserved_calls()
  UNION ALL SELECT * FROM dispatch.disagreeing_queues(p_defaults)
$$;

-- Calls that hold what they should not, or wait for nobody.
CREATE OR REPLACE FUNCTION dispatch.disagreeing_calls(p_cooldown_seconds float8)
RETURNS TABLE (kind text, user_id uuid, model text, subject uuid)
LANGUAGE sql STABLE AS $$
  SELECT f.kind, c.user_id, c.model, c.call_id
  FROM public.model_calls c
  LEFT JOIN public.workers w USING (worker_id)
  LEFT JOIN public.pools p USING (pool)
  -- A tender comes by every second; twice as long for one that has much to do.
  CROSS JOIN LATERAL (SELECT
    clock_timestamp() - make_interval(secs => 2) AS lately,
    clock_timestamp() - make_interval(secs => p_cooldown_seconds + 2) AS cooled
  ) t
  CROSS JOIN LATERAL (
    SELECT 'call_left' AS kind
    WHERE c.seat IS NULL AND c.asked_at < t.lately
      AND coalesce(w.lease_until, '-infinity') < t.lately
    UNION ALL
    SELECT 'seat_kept'
    WHERE c.seat IS NOT NULL AND CASE
      WHEN c.lost_at IS NOT NULL THEN c.lost_at < t.cooled
      WHEN c.granted_at >= t.cooled THEN false
      WHEN coalesce(w.lease_until, '-infinity') < t.cooled THEN true
      WHEN c.taken_at IS NULL THEN true
      ELSE NOT EXISTS (
        SELECT 1 FROM public.runs r
        WHERE r.user_id = c.user_id AND r.run_id = c.run_id AND r.fence = c.fence
          AND r.state = 'running'
      )
    END
    UNION ALL
    SELECT 'seat_shared'
    WHERE c.seat IS NOT NULL AND EXISTS (
      SELECT 1 FROM public.model_calls o
      WHERE o.pool = c.pool AND o.seat = c.seat
        AND (o.user_id, o.call_id) < (c.user_id, c.call_id)
    )
    UNION ALL
    SELECT 'seat_too_many' WHERE c.seat > p.capacity AND c.granted_at > p.resized_at
  ) f
$$;

-- Calls that wait though they could be served. What somebody is just changing is left out: whoever
-- changes it serves those who are next before they commit.
CREATE OR REPLACE FUNCTION dispatch.unserved_calls()
RETURNS TABLE (kind text, user_id uuid, model text, subject uuid)
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN u.eligible THEN 'seat_idle' ELSE 'call_passed' END, u.user_id, u.model, n.call_id
  FROM public.models m
  JOIN public.model_users u USING (model)
  CROSS JOIN LATERAL (
    SELECT c.call_id FROM public.model_calls c
    WHERE c.user_id = u.user_id AND c.model = u.model AND c.seat IS NULL
    ORDER BY c.priority DESC, c.asked_at, c.call_id LIMIT 1
  ) n
  WHERE dispatch.has_free_seat(m.model) AND (
    SELECT count(*) FROM public.model_calls c
    WHERE c.user_id = u.user_id AND c.model = u.model AND c.seat IS NOT NULL
  ) < (dispatch.terms_of(u.user_id, u.model)).most_seats
$$;

-- Queues that would not be looked at, though somebody's run could be claimed or will be due.
CREATE OR REPLACE FUNCTION dispatch.disagreeing_queues(p_defaults jsonb)
RETURNS TABLE (kind text, user_id uuid, model text, subject uuid)
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  SELECT CASE WHEN q.user_id IS NULL THEN 'queue_missing' ELSE 'queue_asleep' END,
    w.user_id, NULL, w.user_id
  FROM (SELECT DISTINCT r.user_id FROM public.runs r WHERE r.state = 'pending') w
  LEFT JOIN public.run_queues q USING (user_id)
  WHERE q.user_id IS NULL OR (
    NOT q.claimable AND dispatch.has_room(w.user_id, p_defaults) AND (
      dispatch.head_of(w.user_id) IS NOT NULL OR EXISTS (
        SELECT 1 FROM public.runs r
        WHERE r.user_id = w.user_id AND r.state = 'pending' AND r.due_at > clock_timestamp()
          AND r.due_at < coalesce(q.wake_at, 'infinity')
      )
    )
  )
$$;

-- Puts in order what `check_agreement` found, as far as that takes nothing from anybody who may be
-- alive: seats are tended, waiting people weighed anew, queues looked at by the next claim. Returns
-- the calls that were given a seat by it.
CREATE OR REPLACE FUNCTION dispatch.put_in_order(
  p_cooldown_seconds float8, p_defaults jsonb, p_take_up_seconds float8 DEFAULT 2
) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
  granted uuid[];
  asleep uuid;
BEGIN
  PERFORM dispatch.hold_models(ARRAY(SELECT m.model FROM public.models m));
  granted := dispatch.serve_anew();
  granted := granted || dispatch.tend_seats(p_cooldown_seconds, p_take_up_seconds);
  FOR asleep IN
    SELECT d.user_id FROM dispatch.disagreeing_queues(p_defaults) d ORDER BY d.user_id
  LOOP
    PERFORM tenant.call_up(asleep);
  END LOOP;
  RETURN granted;
END $$;
