-- The stored log of a run's stream, behind the tenant door.

-- Inserts events as they come; the caller has bound the user and holds the fence.
-- p_ns and p_checkpoint name, for an event that leaves out its values, the checkpoint that has them.
CREATE OR REPLACE FUNCTION tenant.insert_events(
  p_user uuid, p_run uuid, p_first_seq int,
  p_events text[], p_data bytea[], p_ns text[], p_checkpoint text[]
) RETURNS void
LANGUAGE sql AS $$
  INSERT INTO public.run_events (user_id, run_id, seq, event, data, checkpoint_ns, checkpoint_id)
  SELECT p_user, p_run, p_first_seq + e.n - 1, e.event, e.data, e.ns, e.checkpoint
  FROM unnest(p_events, p_data, p_ns, p_checkpoint) WITH ORDINALITY
    AS e (event, data, ns, checkpoint, n)
  -- The same owner's retry after a commit whose answer was lost.
  ON CONFLICT (user_id, run_id, seq) DO NOTHING;
$$;

-- Appends one flush of events: bind, guard and insert in one round trip.
CREATE OR REPLACE FUNCTION tenant.append_events(
  p_user uuid, p_run uuid, p_fence bigint, p_first_seq int,
  p_events text[], p_data bytea[], p_ns text[], p_checkpoint text[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM tenant.hold_fence(p_run, p_fence);
  PERFORM tenant.insert_events(
    p_user, p_run, p_first_seq, p_events, p_data, p_ns, p_checkpoint
  );
END $$;

-- The next page of a run's log, bounded in events and bytes, each row with the run's state in
-- the same snapshot and whether more follows; one row without an event when there is nothing
-- new, none when the run is not the user's. `pruned_through` is the last number that retention
-- has left gaps before, `dropped_through` the last before which it has left nothing.
CREATE OR REPLACE FUNCTION tenant.read_log(
  p_user uuid, p_run uuid, p_after int, p_limit int, p_bytes int
) RETURNS TABLE (
  state text, error_code text, error_message text, pruned_through int, dropped_through int,
  more boolean,
  seq int, event text, data bytea, checkpoint_ns text, checkpoint_id text
)
-- With policies, planning for each call anew costs more than the query.
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN QUERY
  WITH next AS (
    SELECT e.seq, e.event, e.data, e.size, e.checkpoint_ns, e.checkpoint_id
    FROM public.run_events e
    WHERE e.user_id = p_user AND e.run_id = p_run AND e.seq > p_after
    ORDER BY e.seq LIMIT p_limit
  ),
  sized AS (
    SELECT n.*, count(*) OVER () AS found,
      sum(n.size) OVER (ORDER BY n.seq) - n.size AS before
    FROM next n
  )
  SELECT r.state::text, r.error_code, r.error_message, r.pruned_through,
    r.log_dropped_through, coalesce(s.found = p_limit OR s.found > count(s.seq) OVER (), false),
    s.seq, s.event, s.data, s.checkpoint_ns, s.checkpoint_id
  FROM public.runs r
  LEFT JOIN sized s ON s.before < p_bytes
  WHERE r.user_id = p_user AND r.run_id = p_run
  ORDER BY s.seq;
END $$;
