-- What is kept for a while only, behind the tenant door: one person's rows, a batch at a time.

-- Drops the pieces in which an ended run's messages came, since its thread's state holds the
-- messages. Not those of a run that did not succeed: its last words may be nowhere else. True once
-- there is nothing left to do; `pruned_through` says where readers will find gaps.
CREATE OR REPLACE FUNCTION tenant.prune_deltas(
  p_user uuid, p_run uuid, p_limit int
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  run record;
  dropped int := 0;
  through int;
BEGIN
  PERFORM tenant.begin_write(p_user);
  SELECT r.state = 'success' AS has_its_messages INTO run
  FROM public.runs r
  WHERE r.user_id = p_user AND r.run_id = p_run
    AND r.ended_at IS NOT NULL AND r.pruned_at IS NULL
  FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN true;
  END IF;
  IF run.has_its_messages THEN
    WITH deltas AS (
      SELECT e.seq FROM public.run_events e
      WHERE e.user_id = p_user AND e.run_id = p_run
        AND (e.event = 'messages' OR e.event LIKE 'messages|%' OR e.event LIKE 'messages/partial%')
      ORDER BY e.seq LIMIT p_limit
    ),
    gone AS (
      DELETE FROM public.run_events e USING deltas d
      WHERE e.user_id = p_user AND e.run_id = p_run AND e.seq = d.seq
      RETURNING e.seq
    )
    SELECT count(*), max(gone.seq) INTO dropped, through FROM gone;
  END IF;
  UPDATE public.runs r
  SET pruned_through = greatest(r.pruned_through, coalesce(through, 0)),
      pruned_at = CASE WHEN dropped < p_limit THEN clock_timestamp() END
  WHERE r.user_id = p_user AND r.run_id = p_run;
  RETURN dropped < p_limit;
END $$;

-- Forgets idempotency keys that mean nothing any more; true once none is left.
CREATE OR REPLACE FUNCTION tenant.drop_idempotency_keys(p_user uuid, p_limit int) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  dropped int;
BEGIN
  PERFORM tenant.begin_write(p_user);
  DELETE FROM public.idempotency_keys k
  WHERE k.user_id = p_user AND (k.route, k.key) IN (
    SELECT o.route, o.key FROM public.idempotency_keys o
    WHERE o.user_id = p_user AND o.created_at < (SELECT clock_timestamp()) - interval '24 hours'
    ORDER BY o.route, o.key LIMIT p_limit
    FOR UPDATE
  );
  GET DIAGNOSTICS dropped = ROW_COUNT;
  RETURN dropped < p_limit;
END $$;
