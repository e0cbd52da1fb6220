-- Cancelling runs, behind the tenant door. Locks come in the order of `runs.sql`.

-- Takes back what a run wrote to its thread. What it did elsewhere stays on record.
CREATE OR REPLACE FUNCTION tenant.roll_back(p_user uuid, p_thread uuid, p_run uuid) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM public.checkpoint_blobs
  WHERE user_id = p_user AND thread_id = p_thread AND run_id = p_run;
  DELETE FROM public.checkpoints
  WHERE user_id = p_user AND thread_id = p_thread AND run_id = p_run;
  DELETE FROM public.checkpoint_writes
  WHERE user_id = p_user AND thread_id = p_thread AND run_id = p_run;
END $$;

-- Cancels open runs: one that no living worker holds on the spot, a running one by a request that
-- its worker, or whoever takes it up after that, must follow. Says what became of each.
-- NULL for p_thread, p_runs or p_states means any. The caller has bound the user.
CREATE OR REPLACE FUNCTION tenant.cancel_open_runs(
  p_user uuid, p_thread uuid, p_runs uuid[], p_states text[], p_action text
) RETURNS TABLE (run_id uuid, thread_id uuid, state text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  target record;
BEGIN
  FOR target IN
    SELECT r.run_id, r.thread_id,
      r.state = 'running' AND EXISTS (
        SELECT 1 FROM public.workers w
        WHERE w.worker_id = r.worker_id AND w.lease_until > (SELECT clock_timestamp())
      ) AS is_held
    FROM public.runs r
    WHERE r.user_id = p_user AND r.state IN ('pending', 'running', 'waiting')
      AND (p_thread IS NULL OR r.thread_id = p_thread)
      AND (p_runs IS NULL OR r.run_id = ANY (p_runs))
      AND (p_states IS NULL OR r.state::text = ANY (p_states))
    ORDER BY r.run_id
    FOR NO KEY UPDATE
  LOOP
    IF target.is_held THEN
      UPDATE public.runs r
      SET cancel_requested_at = coalesce(r.cancel_requested_at, clock_timestamp()),
          cancel_action = CASE WHEN r.cancel_action = 'rollback' THEN 'rollback' ELSE p_action END,
          updated_at = clock_timestamp()
      WHERE r.user_id = p_user AND r.run_id = target.run_id;
    ELSE
      PERFORM tenant.end_as_cancelled(p_user, target.run_id, p_action);
    END IF;
    run_id := target.run_id;
    thread_id := target.thread_id;
    state := CASE WHEN target.is_held THEN 'running' ELSE 'cancelled' END;
    RETURN NEXT;
  END LOOP;
END $$;

-- Ends a run whose cancel was asked for, before (NULL) or just now; with a rollback if that was
-- asked for. The caller holds its row. One update: at a second one of the same row, the foreign keys
-- would be looked at again, and the thread locked after the run.
CREATE OR REPLACE FUNCTION tenant.end_as_cancelled(
  p_user uuid, p_run uuid, p_action text DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  ended record;
BEGIN
  UPDATE public.runs r
  SET state = 'cancelled', fence = r.fence + 1, worker_id = NULL,
      cancel_requested_at = coalesce(r.cancel_requested_at, clock_timestamp()),
      cancel_action = CASE
        WHEN r.cancel_action = 'rollback' THEN 'rollback' ELSE coalesce(p_action, r.cancel_action)
      END,
      ended_at = clock_timestamp(), updated_at = clock_timestamp()
  WHERE r.user_id = p_user AND r.run_id = p_run
  RETURNING r.thread_id, r.cancel_action INTO STRICT ended;
  IF ended.cancel_action = 'rollback' THEN
    PERFORM tenant.roll_back(p_user, ended.thread_id, p_run);
  END IF;
END $$;

-- Cancels open runs as `cancel_open_runs` does, in a transaction of its own.
CREATE OR REPLACE FUNCTION tenant.cancel_runs(
  p_user uuid, p_thread uuid, p_runs uuid[], p_states text[], p_action text
) RETURNS TABLE (run_id uuid, thread_id uuid, state text)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  RETURN QUERY SELECT * FROM tenant.cancel_open_runs(p_user, p_thread, p_runs, p_states, p_action);
END $$;
