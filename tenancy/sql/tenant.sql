-- The tenant door's functions. Applied anew by every `stoa migrate`, as the owner role.
-- All are SECURITY INVOKER: they see what the caller's policies let the caller see.

CREATE SCHEMA IF NOT EXISTS tenant;

CREATE OR REPLACE FUNCTION tenant.unbound(p_what text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
  RAISE EXCEPTION 'no % is bound to this transaction', p_what USING ERRCODE = 'ST002';
END $$;

-- The transaction's user. Raises when there is none: a session that lost its setting must
-- fail, not count zero rows. A setting used once reads '' afterwards, hence nullif.
-- Plain SQL, so that the planner inlines it into the policies.
CREATE OR REPLACE FUNCTION tenant.user_id() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(
    nullif(pg_catalog.current_setting('app.user_id', true), ''), tenant.unbound('user')
  )::pg_catalog.uuid
$$;

-- The verified (issuer, subject) that a sign-in transaction is about.
CREATE OR REPLACE FUNCTION tenant.identity() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(
    nullif(pg_catalog.current_setting('app.identity', true), ''), tenant.unbound('identity')
  )
$$;

-- Binds the user for reading, and for nothing else: writes have to hold the user's row.
CREATE OR REPLACE FUNCTION tenant.begin_read(p_user uuid) RETURNS void
LANGUAGE sql AS $$
  SELECT set_config('app.user_id', p_user::text, true),
         set_config('transaction_read_only', 'on', true);
$$;

-- Binds the user and holds their row, so that an erasure waits for this transaction and
-- this transaction refuses once an erasure has begun: a lock, not a check.
CREATE OR REPLACE FUNCTION tenant.begin_write(p_user uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  found_state public.user_state;
BEGIN
  PERFORM set_config('app.user_id', p_user::text, true);
  SELECT state INTO found_state FROM public.users WHERE user_id = p_user FOR KEY SHARE;
  IF found_state IS DISTINCT FROM 'active' THEN
    RAISE EXCEPTION 'this user cannot be written for' USING ERRCODE = 'ST003';
  END IF;
END $$;

-- The guard of every write that a worker makes for a run, and of the thread it writes to. FOR SHARE makes a takeover wait
-- for this transaction's commit; a plain SELECT would not.
CREATE OR REPLACE FUNCTION tenant.hold_fence(
  p_run uuid, p_fence bigint, p_thread uuid DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM public.runs r
  WHERE r.user_id = (SELECT tenant.user_id()) AND r.run_id = p_run
    AND r.fence = p_fence AND r.state = 'running'
    AND (p_thread IS NULL OR r.thread_id = p_thread)
    AND EXISTS (
      SELECT 1 FROM public.workers w
      WHERE w.worker_id = r.worker_id AND w.lease_until > (SELECT clock_timestamp())
    )
  FOR SHARE OF r;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'ST001';
  END IF;
END $$;

-- Puts a run into its thread's queue; NULL when there is no such thread. The update of the
-- thread is also the lock that orders its runs.
CREATE OR REPLACE FUNCTION tenant.accept_run(
  p_user uuid, p_thread uuid, p_run uuid, p_assistant uuid, p_graph text,
  p_request jsonb, p_metadata jsonb, p_title text, p_create boolean
) RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
  accepted timestamptz;
BEGIN
  PERFORM tenant.begin_write(p_user);
  UPDATE public.threads SET updated_at = clock_timestamp(), title = coalesce(title, p_title)
  WHERE user_id = p_user AND thread_id = p_thread;
  IF NOT FOUND THEN
    IF NOT p_create THEN
      RETURN NULL;
    END IF;
    INSERT INTO public.threads (user_id, thread_id, title) VALUES (p_user, p_thread, p_title)
    ON CONFLICT (user_id, thread_id) DO UPDATE SET updated_at = clock_timestamp();
  END IF;
  accepted := clock_timestamp();
  INSERT INTO public.runs (
    user_id, run_id, thread_id, assistant_id, graph_id, request, metadata, created_at, updated_at
  )
  VALUES (
    p_user, p_run, p_thread, p_assistant, p_graph, p_request, p_metadata, accepted, accepted
  );
  RETURN accepted;
END $$;

-- Appends one flush of events: bind, guard and insert in one round trip.
CREATE OR REPLACE FUNCTION tenant.append_events(
  p_user uuid, p_run uuid, p_fence bigint, p_first_seq int, p_events text[], p_data bytea[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM tenant.hold_fence(p_run, p_fence);
  INSERT INTO public.run_events (user_id, run_id, seq, event, data)
  SELECT p_user, p_run, p_first_seq + e.n - 1, e.event, e.data
  FROM unnest(p_events, p_data) WITH ORDINALITY AS e (event, data, n)
  -- The same owner's retry after a commit whose answer was lost.
  ON CONFLICT (user_id, run_id, seq) DO NOTHING;
END $$;

-- Begins an attempt: what a claimed run needs to be executed, the thread's newest checkpoint
-- (which LangGraph asks for first), and the run's first event, all in one round trip.
-- A claim is not on disk before this is: after a crash in between, another worker's claim has the
-- same fence, so here, and only here, the worker counts too.
DROP FUNCTION IF EXISTS tenant.begin_attempt(uuid, uuid, bigint);
CREATE OR REPLACE FUNCTION tenant.begin_attempt(
  p_user uuid, p_run uuid, p_fence bigint, p_worker uuid
) RETURNS TABLE (
  run_thread_id uuid, graph_id text, request jsonb, run_metadata jsonb, attempt int, next_seq int,
  thread_id text, checkpoint jsonb, checkpoint_ns text, checkpoint_id text,
  parent_checkpoint_id text, metadata jsonb, channel_values bytea[], pending_writes bytea[]
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  run record;
  seq int;
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM tenant.hold_fence(p_run, p_fence);
  SELECT r.thread_id, r.graph_id, r.request, r.metadata, r.attempt INTO run
  FROM public.runs r WHERE r.user_id = p_user AND r.run_id = p_run AND r.worker_id = p_worker;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'ST001';
  END IF;
  SELECT coalesce(max(e.seq), 0) + 1 INTO seq
  FROM public.run_events e WHERE e.user_id = p_user AND e.run_id = p_run;
  INSERT INTO public.run_events (user_id, run_id, seq, event, data)
  VALUES (
    p_user, p_run, seq, 'metadata',
    convert_to(format('{"run_id":"%s","attempt":%s}', p_run, run.attempt), 'UTF8')
  );
  RETURN QUERY
  SELECT run.thread_id, run.graph_id, run.request, run.metadata, run.attempt, seq + 1, c.*
  FROM (SELECT) AS one
  LEFT JOIN tenant.read_checkpoint(p_user, run.thread_id::text, '', NULL) AS c ON true;
END $$;

-- The next page of a run's log, bounded in events and bytes, each row with the run's state in
-- the same snapshot and whether more follows; one row without an event when there is nothing new, none when the run is not the user's.
CREATE OR REPLACE FUNCTION tenant.read_log(
  p_user uuid, p_run uuid, p_after int, p_limit int, p_bytes int
) RETURNS TABLE (
  state text, error_code text, error_message text, more boolean,
  seq int, event text, data bytea
)
-- With policies, planning for each call anew costs more than the query.
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN QUERY
  WITH next AS (
    SELECT e.seq, e.event, e.data FROM public.run_events e
    WHERE e.user_id = p_user AND e.run_id = p_run AND e.seq > p_after
    ORDER BY e.seq LIMIT p_limit
  ),
  sized AS (
    SELECT n.*, count(*) OVER () AS found,
      sum(octet_length(n.data)) OVER (ORDER BY n.seq) - octet_length(n.data) AS before
    FROM next n
  )
  SELECT r.state::text, r.error_code, r.error_message,
    coalesce(s.found = p_limit OR s.found > count(s.seq) OVER (), false), s.seq, s.event, s.data
  FROM public.runs r
  LEFT JOIN sized s ON s.before < p_bytes
  WHERE r.user_id = p_user AND r.run_id = p_run
  ORDER BY s.seq;
END $$;

-- Ends a run: the last events and the outcome commit together, so nobody can read `end`
-- before both. The row is locked for update first (share-then-update would deadlock).
CREATE OR REPLACE FUNCTION tenant.settle_run(
  p_user uuid, p_run uuid, p_fence bigint, p_state text,
  p_error_code text, p_error_message text,
  p_first_seq int, p_events text[], p_data bytea[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  UPDATE public.runs r
  SET state = p_state::public.run_state, error_code = p_error_code, error_message = p_error_message,
      worker_id = NULL, ended_at = clock_timestamp(), updated_at = clock_timestamp()
  WHERE r.user_id = p_user AND r.run_id = p_run
    AND r.fence = p_fence AND r.state = 'running'
    AND EXISTS (
      SELECT 1 FROM public.workers w
      WHERE w.worker_id = r.worker_id AND w.lease_until > (SELECT clock_timestamp())
    );
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'ST001';
  END IF;
  INSERT INTO public.run_events (user_id, run_id, seq, event, data)
  SELECT p_user, p_run, p_first_seq + e.n - 1, e.event, e.data
  FROM unnest(p_events, p_data) WITH ORDINALITY AS e (event, data, n)
  -- Those of a flush that was committed and whose answer was lost are there already.
  ON CONFLICT (user_id, run_id, seq) DO NOTHING;
END $$;

-- Finds the user of a verified identity, or makes the candidate that user. Two first requests
-- at once agree on one: the loser's insert fails on the unique identity and it reads again.
CREATE OR REPLACE FUNCTION tenant.sign_in(
  p_candidate uuid, p_identity text, p_name text, p_email text
) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
  found_user uuid;
BEGIN
  PERFORM set_config('app.identity', p_identity, true);
  SELECT user_id INTO found_user FROM public.identities WHERE identity = p_identity;
  IF found_user IS NULL THEN
    PERFORM set_config('app.user_id', p_candidate::text, true);
    BEGIN
      INSERT INTO public.users (user_id, name, email) VALUES (p_candidate, p_name, p_email);
      INSERT INTO public.identities (user_id, identity) VALUES (p_candidate, p_identity);
      RETURN p_candidate;
    EXCEPTION WHEN unique_violation THEN
      SELECT user_id INTO STRICT found_user FROM public.identities WHERE identity = p_identity;
    END;
  END IF;
  PERFORM set_config('app.user_id', found_user::text, true);
  UPDATE public.users SET name = p_name, email = p_email
  WHERE user_id = found_user AND state = 'active'
    AND (name, email) IS DISTINCT FROM (p_name, p_email);
  RETURN found_user;
END $$;

-- Writes a batch of LangGraph's rows, as langgraph-checkpoint-postgres 3.2.0 would, with the
-- user in every key. The guard is the last statement before the commit.
CREATE OR REPLACE FUNCTION tenant.write_checkpoints(
  p_user uuid, p_run uuid, p_fence bigint, p_thread text,
  c_ns text[], c_id text[], c_parent text[], c_checkpoint text[], c_metadata text[],
  b_ns text[], b_channel text[], b_version text[], b_type text[], b_blob bytea[],
  w_ns text[], w_checkpoint text[], w_task text[], w_path text[], w_idx int[],
  w_channel text[], w_type text[], w_blob bytea[], w_replaces bool[]
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  thread uuid := p_thread::uuid;
BEGIN
  PERFORM tenant.begin_write(p_user);
  IF cardinality(b_ns) > 0 THEN
    INSERT INTO public.checkpoint_blobs
      (user_id, thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT p_user, thread, b.*
    FROM unnest(b_ns, b_channel, b_version, b_type, b_blob) AS b
    ON CONFLICT (user_id, thread_id, checkpoint_ns, channel, version) DO NOTHING;
  END IF;
  IF cardinality(c_ns) > 0 THEN
    INSERT INTO public.checkpoints
      (user_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
    SELECT p_user, thread, c.ns, c.id, c.parent, c.checkpoint::jsonb, c.metadata::jsonb
    FROM unnest(c_ns, c_id, c_parent, c_checkpoint, c_metadata)
      AS c (ns, id, parent, checkpoint, metadata)
    ON CONFLICT (user_id, thread_id, checkpoint_ns, checkpoint_id)
    DO UPDATE SET checkpoint = EXCLUDED.checkpoint, metadata = EXCLUDED.metadata;
  END IF;
  IF false = ANY (w_replaces) THEN
    INSERT INTO public.checkpoint_writes
      (user_id, thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
    SELECT p_user, thread, w.ns, w.id, w.task, w.path, w.idx, w.channel, w.type, w.blob
    FROM unnest(w_ns, w_checkpoint, w_task, w_path, w_idx, w_channel, w_type, w_blob, w_replaces)
      AS w (ns, id, task, path, idx, channel, type, blob, replaces)
    WHERE NOT w.replaces
    ON CONFLICT (user_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO NOTHING;
  END IF;
  IF true = ANY (w_replaces) THEN
    INSERT INTO public.checkpoint_writes
      (user_id, thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
    SELECT p_user, thread, w.ns, w.id, w.task, w.path, w.idx, w.channel, w.type, w.blob
    FROM unnest(w_ns, w_checkpoint, w_task, w_path, w_idx, w_channel, w_type, w_blob, w_replaces)
      AS w (ns, id, task, path, idx, channel, type, blob, replaces)
    WHERE w.replaces
    ON CONFLICT (user_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
    DO UPDATE SET channel = EXCLUDED.channel, type = EXCLUDED.type, blob = EXCLUDED.blob;
  END IF;
  PERFORM tenant.hold_fence(p_run, p_fence, thread);
END $$;

-- The newest checkpoint of a thread's namespace, or the named one, as the library's select
-- gives it: with its channels' blobs and its pending writes.
CREATE OR REPLACE FUNCTION tenant.read_checkpoint(
  p_user uuid, p_thread text, p_ns text, p_checkpoint text
) RETURNS TABLE (
  thread_id text, checkpoint jsonb, checkpoint_ns text, checkpoint_id text,
  parent_checkpoint_id text, metadata jsonb, channel_values bytea[], pending_writes bytea[]
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN QUERY
  SELECT c.thread_id::text, c.checkpoint, c.checkpoint_ns, c.checkpoint_id,
    c.parent_checkpoint_id, c.metadata,
    (
      SELECT array_agg(ARRAY[b.channel::bytea, b.type::bytea, b.blob])
      FROM jsonb_each_text(c.checkpoint -> 'channel_versions') AS v
      JOIN public.checkpoint_blobs b
        ON b.user_id = c.user_id AND b.thread_id = c.thread_id
        AND b.checkpoint_ns = c.checkpoint_ns AND b.channel = v.key AND b.version = v.value
    ),
    (
      SELECT array_agg(ARRAY[
        w.task_id::bytea, w.channel::bytea, w.type::bytea, w.blob,
        convert_to(w.task_path, 'UTF8'), w.idx::text::bytea
      ])
      FROM public.checkpoint_writes w
      WHERE w.user_id = c.user_id AND w.thread_id = c.thread_id
        AND w.checkpoint_ns = c.checkpoint_ns AND w.checkpoint_id = c.checkpoint_id
    )
  FROM public.checkpoints c
  WHERE c.user_id = p_user AND c.thread_id = p_thread::uuid AND c.checkpoint_ns = p_ns
    AND (p_checkpoint IS NULL OR c.checkpoint_id = p_checkpoint)
  ORDER BY c.checkpoint_id DESC
  LIMIT 1;
END $$;
