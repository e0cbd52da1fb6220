-- The cross-user door: queue and leases, for the dispatch role. SECURITY INVOKER, so the
-- role's column grants hold: nothing here can read what people say.

CREATE SCHEMA IF NOT EXISTS dispatch;

CREATE OR REPLACE FUNCTION dispatch.register_worker(
  p_worker uuid, p_host text, p_pid int, p_process_started_at timestamptz, p_lease_seconds float8
) RETURNS void
LANGUAGE sql AS $$
  INSERT INTO public.workers (worker_id, host, pid, process_started_at, started_at, lease_until)
  SELECT p_worker, p_host, p_pid, p_process_started_at,
    now.at, now.at + make_interval(secs => p_lease_seconds)
  FROM (SELECT clock_timestamp() AS at) AS now;
$$;

-- False when the lease has run out: it is never revived, the worker must start anew.
CREATE OR REPLACE FUNCTION dispatch.renew_lease(p_worker uuid, p_lease_seconds float8)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE public.workers
  SET lease_until = clock_timestamp() + make_interval(secs => p_lease_seconds)
  WHERE worker_id = p_worker AND lease_until > (SELECT clock_timestamp());
  RETURN FOUND;
END $$;

-- Claims up to p_slots runs: heads of their threads only, oldest first, no user above
-- p_cap runs at once. Claims are serialised, which is what makes the cap exact.
CREATE OR REPLACE FUNCTION dispatch.claim_runs(p_worker uuid, p_slots int, p_cap int)
RETURNS TABLE (user_id uuid, run_id uuid, fence bigint)
-- Behind a policy the planner knows nothing of how many runs are in which state, and takes the few
-- that wait for most of the table.
LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  head record;
BEGIN
  -- A claim need not be on disk by itself: the attempt that begins with it is, and flushes it.
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM pg_advisory_xact_lock(hashtextextended('stoa.claim_runs', 0));
  -- Held, so that a worker does not leave, or is cleared away, while it is given something.
  PERFORM 1 FROM public.workers w
  WHERE w.worker_id = p_worker AND NOT w.draining
    AND w.lease_until > (SELECT clock_timestamp())
  FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'ST001';
  END IF;
  FOR head IN
  WITH RECURSIVE waiting (user_id) AS (
    (SELECT r.user_id FROM public.runs r WHERE r.state = 'pending' ORDER BY r.user_id LIMIT 1)
    UNION ALL
    SELECT (
      SELECT r.user_id FROM public.runs r
      WHERE r.state = 'pending' AND r.user_id > w.user_id ORDER BY r.user_id LIMIT 1
    )
    FROM waiting w WHERE w.user_id IS NOT NULL
  ),
  heads AS (
    SELECT h.user_id, h.run_id
    FROM waiting w
    CROSS JOIN LATERAL (
      SELECT r.user_id, r.run_id, r.created_at
      FROM public.runs r
      WHERE r.state = 'pending' AND r.user_id = w.user_id
        AND EXISTS (
          SELECT 1 FROM public.users u WHERE u.user_id = r.user_id AND u.state = 'active'
        )
        AND NOT EXISTS (
          SELECT 1 FROM public.runs o
          WHERE o.user_id = r.user_id AND o.thread_id = r.thread_id
            AND o.state IN ('pending', 'running', 'waiting')
            AND (o.state <> 'pending' OR (o.created_at, o.run_id) < (r.created_at, r.run_id))
        )
      ORDER BY r.created_at, r.run_id
      LIMIT greatest(0, p_cap - (
        SELECT count(*) FROM public.runs x
        WHERE x.user_id = w.user_id AND x.state = 'running'
      ))
    ) h
    ORDER BY h.created_at, h.run_id
    LIMIT p_slots
  )
  SELECT h.user_id, h.run_id FROM heads h
  LOOP
    -- Somebody may be cancelling it; no claim waits for one person's transaction.
    PERFORM 1 FROM public.runs r
    WHERE r.user_id = head.user_id AND r.run_id = head.run_id AND r.state = 'pending'
    FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    -- One by one: joined to the list, the planner reads the whole table.
    RETURN QUERY
    UPDATE public.runs r
    SET state = 'running', fence = r.fence + 1, attempt = r.attempt + 1,
        worker_id = p_worker, claimed_at = clock_timestamp(), updated_at = clock_timestamp()
    WHERE r.user_id = head.user_id AND r.run_id = head.run_id AND r.state = 'pending'
    RETURNING r.user_id, r.run_id, r.fence;
  END LOOP;
END $$;

-- Puts runs of dead workers back into the queue under a higher fence; each has spent an attempt.
-- Says how many. What somebody else has locked just now is left for the next round.
CREATE OR REPLACE FUNCTION dispatch.reap_expired_leases() RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  reaped int;
  dead uuid[];
BEGIN
  WITH lost AS (
    SELECT r.user_id, r.run_id
    FROM public.runs r JOIN public.workers w ON w.worker_id = r.worker_id
    WHERE r.state = 'running' AND w.lease_until <= (SELECT clock_timestamp())
    ORDER BY r.user_id, r.run_id
    FOR NO KEY UPDATE OF r SKIP LOCKED
  )
  UPDATE public.runs r
  SET state = 'pending', fence = r.fence + 1, attempts_spent = r.attempts_spent + 1,
      worker_id = NULL, updated_at = clock_timestamp()
  FROM lost WHERE r.user_id = lost.user_id AND r.run_id = lost.run_id;
  GET DIAGNOSTICS reaped = ROW_COUNT;
  -- First held, then looked at: a claim that began while the lease lived may have just ended.
  dead := ARRAY(
    SELECT w.worker_id FROM public.workers w
    WHERE w.lease_until <= (SELECT clock_timestamp())
    ORDER BY w.worker_id FOR UPDATE SKIP LOCKED
  );
  DELETE FROM public.workers w
  WHERE w.worker_id = ANY (dead)
    AND NOT EXISTS (SELECT 1 FROM public.runs r WHERE r.worker_id = w.worker_id);
  RETURN reaped;
END $$;

-- What a worker holds: each run with its fence, and whether its cancel was asked for.
CREATE OR REPLACE FUNCTION dispatch.held_runs(p_worker uuid)
RETURNS TABLE (user_id uuid, run_id uuid, fence bigint, cancel_requested boolean)
LANGUAGE sql STABLE AS $$
  SELECT r.user_id, r.run_id, r.fence, r.cancel_requested_at IS NOT NULL
  FROM public.runs r WHERE r.state = 'running' AND r.worker_id = p_worker;
$$;

-- Gives back one run that a living worker does not bring to its end. An attempt is spent only
-- where that was no orderly leave.
CREATE OR REPLACE FUNCTION dispatch.release_run(
  p_user uuid, p_run uuid, p_fence bigint, p_spend boolean
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE public.runs r
  SET state = 'pending', fence = r.fence + 1,
      attempts_spent = r.attempts_spent + p_spend::int,
      worker_id = NULL, updated_at = clock_timestamp()
  WHERE r.user_id = p_user AND r.run_id = p_run AND r.fence = p_fence AND r.state = 'running';
  RETURN FOUND;
END $$;

-- Gives back what a worker holds, all but p_known, without an attempt spent. Says how many.
CREATE OR REPLACE FUNCTION dispatch.release_runs_but(p_worker uuid, p_known uuid[])
RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  released int;
BEGIN
  WITH held AS (
    SELECT r.user_id, r.run_id FROM public.runs r
    WHERE r.state = 'running' AND r.worker_id = p_worker AND r.run_id <> ALL (p_known)
    ORDER BY r.user_id, r.run_id
    FOR NO KEY UPDATE
  )
  UPDATE public.runs r
  SET state = 'pending', fence = r.fence + 1, worker_id = NULL, updated_at = clock_timestamp()
  FROM held WHERE r.user_id = held.user_id AND r.run_id = held.run_id;
  GET DIAGNOSTICS released = ROW_COUNT;
  RETURN released;
END $$;

-- A worker that is told to end claims nothing more, and says so.
CREATE OR REPLACE FUNCTION dispatch.drain_worker(p_worker uuid) RETURNS void
LANGUAGE sql AS $$
  UPDATE public.workers SET draining = true WHERE worker_id = p_worker;
$$;

-- A worker's orderly leave: what it still holds goes back to the queue at once.
CREATE OR REPLACE FUNCTION dispatch.retire_worker(p_worker uuid) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  released int;
BEGIN
  -- A claim of its own that is still under way comes first, or its runs would be left behind.
  PERFORM 1 FROM public.workers w WHERE w.worker_id = p_worker FOR UPDATE;
  released := dispatch.release_runs_but(p_worker, '{}');
  DELETE FROM public.workers WHERE worker_id = p_worker;
  RETURN released;
END $$;
