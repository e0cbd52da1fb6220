-- LangGraph's rows, behind the tenant door.

-- Inserts a batch of LangGraph's rows, as langgraph-checkpoint-postgres 3.2.0 would, with the
-- user in every key and the run that they come from, if they come from one.
CREATE OR REPLACE FUNCTION tenant.insert_checkpoints(
  p_user uuid, p_run uuid, thread uuid,
  c_ns text[], c_id text[], c_parent text[], c_checkpoint text[], c_metadata text[],
  b_ns text[], b_channel text[], b_version text[], b_type text[], b_blob bytea[],
  w_ns text[], w_checkpoint text[], w_task text[], w_path text[], w_idx int[],
  w_channel text[], w_type text[], w_blob bytea[], w_replaces bool[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF cardinality(b_ns) > 0 THEN
    INSERT INTO public.checkpoint_blobs
      (user_id, thread_id, run_id, checkpoint_ns, channel, version, type, blob)
    SELECT p_user, thread, p_run, b.*
    FROM unnest(b_ns, b_channel, b_version, b_type, b_blob) AS b
    ON CONFLICT (user_id, thread_id, checkpoint_ns, channel, version) DO NOTHING;
  END IF;
  IF cardinality(c_ns) > 0 THEN
    INSERT INTO public.checkpoints
      (user_id, thread_id, run_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint,
       metadata)
    SELECT p_user, thread, p_run, c.ns, c.id, c.parent, c.checkpoint::jsonb, c.metadata::jsonb
    FROM unnest(c_ns, c_id, c_parent, c_checkpoint, c_metadata)
      AS c (ns, id, parent, checkpoint, metadata)
    ON CONFLICT (user_id, thread_id, checkpoint_ns, checkpoint_id)
    DO UPDATE SET checkpoint = EXCLUDED.checkpoint, metadata = EXCLUDED.metadata;
  END IF;
  IF false = ANY (w_replaces) THEN
    INSERT INTO public.checkpoint_writes
      (user_id, thread_id, run_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel,
       type, blob)
    SELECT p_user, thread, p_run, w.ns, w.id, w.task, w.path, w.idx, w.channel, w.type, w.blob
    FROM unnest(w_ns, w_checkpoint, w_task, w_path, w_idx, w_channel, w_type, w_blob, w_replaces)
      AS w (ns, id, task, path, idx, channel, type, blob, replaces)
    WHERE NOT w.replaces
    ON CONFLICT (user_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO NOTHING;
  END IF;
  IF true = ANY (w_replaces) THEN
    INSERT INTO public.checkpoint_writes
      (user_id, thread_id, run_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel,
       type, blob)
    SELECT p_user, thread, p_run, w.ns, w.id, w.task, w.path, w.idx, w.channel, w.type, w.blob
    FROM unnest(w_ns, w_checkpoint, w_task, w_path, w_idx, w_channel, w_type, w_blob, w_replaces)
      AS w (ns, id, task, path, idx, channel, type, blob, replaces)
    WHERE w.replaces
    ON CONFLICT (user_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
    DO UPDATE SET channel = EXCLUDED.channel, type = EXCLUDED.type, blob = EXCLUDED.blob;
  END IF;
END $$;

-- Writes what a run hands in. The guard comes before the rows, and its locks last until the
-- commit: whoever deletes the thread or rolls the run back takes thread, run and rows in this order.
CREATE OR REPLACE FUNCTION tenant.write_checkpoints(
  p_user uuid, p_run uuid, p_fence bigint, p_thread text,
  c_ns text[], c_id text[], c_parent text[], c_checkpoint text[], c_metadata text[],
  b_ns text[], b_channel text[], b_version text[], b_type text[], b_blob bytea[],
  w_ns text[], w_checkpoint text[], w_task text[], w_path text[], w_idx int[],
  w_channel text[], w_type text[], w_blob bytea[], w_replaces bool[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM 1 FROM public.threads t
  WHERE t.user_id = p_user AND t.thread_id = p_thread::uuid FOR KEY SHARE;
  PERFORM tenant.hold_fence(p_run, p_fence, p_thread::uuid);
  PERFORM tenant.insert_checkpoints(
    p_user, p_run, p_thread::uuid, c_ns, c_id, c_parent, c_checkpoint, c_metadata,
    b_ns, b_channel, b_version, b_type, b_blob,
    w_ns, w_checkpoint, w_task, w_path, w_idx, w_channel, w_type, w_blob, w_replaces
  );
END $$;

-- Writes what its owner changed about a thread's state, beside any run: the thread is locked, no
-- run may hold it, and its newest checkpoint must still be the one that the change was made from.
-- A claim asks for no thread, so the thread's open runs are locked too: it passes over those.
CREATE OR REPLACE FUNCTION tenant.write_state(
  p_user uuid, p_head text, p_thread text,
  c_ns text[], c_id text[], c_parent text[], c_checkpoint text[], c_metadata text[],
  b_ns text[], b_channel text[], b_version text[], b_type text[], b_blob bytea[],
  w_ns text[], w_checkpoint text[], w_task text[], w_path text[], w_idx int[],
  w_channel text[], w_type text[], w_blob bytea[], w_replaces bool[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  UPDATE public.threads t
  SET updated_at = clock_timestamp(),
      unpruned_since = coalesce(t.unpruned_since, clock_timestamp())
  WHERE t.user_id = p_user AND t.thread_id = p_thread::uuid AND t.deleted_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no such thread' USING ERRCODE = 'ST006';
  END IF;
  PERFORM 1 FROM public.runs r
  WHERE r.user_id = p_user AND r.thread_id = p_thread::uuid
    AND r.state IN ('pending', 'running', 'waiting')
  ORDER BY r.run_id FOR SHARE;
  IF EXISTS (
    SELECT 1 FROM public.runs r
    WHERE r.user_id = p_user AND r.thread_id = p_thread::uuid
      AND (r.state IN ('running', 'waiting') OR (r.state = 'pending' AND r.fence > 0))
  ) OR p_head IS DISTINCT FROM (
    SELECT max(c.checkpoint_id) FROM public.checkpoints c
    WHERE c.user_id = p_user AND c.thread_id = p_thread::uuid AND c.checkpoint_ns = ''
  ) THEN
    RAISE EXCEPTION 'the thread is busy' USING ERRCODE = 'ST004';
  END IF;
  -- The state that this one is made from may have been pruned meanwhile: nothing hangs in the air.
  IF EXISTS (
    SELECT FROM unnest(c_ns, c_parent) AS p (ns, parent)
    WHERE p.parent IS NOT NULL AND p.parent <> ALL (c_id) AND NOT EXISTS (
      SELECT FROM public.checkpoints c
      WHERE c.user_id = p_user AND c.thread_id = p_thread::uuid
        AND c.checkpoint_ns = p.ns AND c.checkpoint_id = p.parent
    )
  ) THEN
    RAISE EXCEPTION 'the thread is busy' USING ERRCODE = 'ST004';
  END IF;
  PERFORM tenant.insert_checkpoints(
    p_user, NULL, p_thread::uuid, c_ns, c_id, c_parent, c_checkpoint, c_metadata,
    b_ns, b_channel, b_version, b_type, b_blob,
    w_ns, w_checkpoint, w_task, w_path, w_idx, w_channel, w_type, w_blob, w_replaces
  );
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
