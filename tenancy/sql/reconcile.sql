-- What earlier processes left, for reconciliation: behind the dispatch role, so without content.

-- Every worker's row, and whether its lease is over by this clock, the only one that counts.
CREATE OR REPLACE FUNCTION dispatch.find_workers()
RETURNS TABLE (worker_id uuid, host text, pid int, process_started_at timestamptz, lease text)
LANGUAGE sql STABLE AS $$
  SELECT w.worker_id, w.host, w.pid, w.process_started_at,
    CASE WHEN w.lease_until > (SELECT clock_timestamp()) THEN 'live' ELSE 'over' END
  FROM public.workers w ORDER BY w.started_at, w.worker_id;
$$;

-- Every running run that no living lease stands behind.
CREATE OR REPLACE FUNCTION dispatch.find_lost_runs()
RETURNS TABLE (
  user_id uuid, run_id uuid, fence bigint,
  host text, pid int, process_started_at timestamptz, lease text
)
LANGUAGE sql STABLE AS $$
  SELECT r.user_id, r.run_id, r.fence, w.host, w.pid, w.process_started_at,
    CASE WHEN w.worker_id IS NULL THEN 'missing' ELSE 'over' END
  FROM public.runs r LEFT JOIN public.workers w ON w.worker_id = r.worker_id
  WHERE r.state = 'running'
    AND (w.worker_id IS NULL OR w.lease_until <= (SELECT clock_timestamp()))
  ORDER BY r.user_id, r.run_id;
$$;

-- Puts one lost run back into the queue under a higher fence, as the reaper does; it has spent an
-- attempt. Says `done`, `overtaken` (it is lost no longer) or `held` (somebody has it locked).
CREATE OR REPLACE FUNCTION dispatch.take_back_run(p_user uuid, p_run uuid, p_fence bigint)
RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM public.runs r
  WHERE r.user_id = p_user AND r.run_id = p_run AND r.fence = p_fence AND r.state = 'running'
    AND NOT EXISTS (
      SELECT 1 FROM public.workers w
      WHERE w.worker_id = r.worker_id AND w.lease_until > (SELECT clock_timestamp())
    )
  FOR NO KEY UPDATE SKIP LOCKED;
  IF FOUND THEN
    UPDATE public.runs r
    SET state = 'pending', fence = r.fence + 1, attempts_spent = r.attempts_spent + 1,
        worker_id = NULL, updated_at = clock_timestamp()
    WHERE r.user_id = p_user AND r.run_id = p_run;
    RETURN 'done';
  END IF;
  PERFORM 1 FROM public.runs r
  WHERE r.user_id = p_user AND r.run_id = p_run AND r.fence = p_fence AND r.state = 'running';
  RETURN CASE WHEN FOUND THEN 'held' ELSE 'overtaken' END;
END $$;

-- Removes a worker's row whose lease is over and that holds no run. Says `done`, `overtaken` (it
-- is gone) or `held` (it holds one, or somebody has it locked).
CREATE OR REPLACE FUNCTION dispatch.remove_worker(p_worker uuid) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM public.workers w
  WHERE w.worker_id = p_worker AND w.lease_until <= (SELECT clock_timestamp())
  FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    DELETE FROM public.workers w
    WHERE w.worker_id = p_worker
      AND NOT EXISTS (SELECT 1 FROM public.runs r WHERE r.worker_id = p_worker);
    RETURN CASE WHEN FOUND THEN 'done' ELSE 'held' END;
  END IF;
  PERFORM 1 FROM public.workers w WHERE w.worker_id = p_worker;
  RETURN CASE WHEN FOUND THEN 'held' ELSE 'overtaken' END;
END $$;
