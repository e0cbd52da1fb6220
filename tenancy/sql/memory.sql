-- What a person keeps in the store, and the memories among it: the items of one namespace, each
-- `{"content": …}` under a UUID. LangGraph's store writes the same rows.

-- Bytes that a person keeps in the store, as they are stored.
CREATE OR REPLACE FUNCTION tenant.memory_bytes(p_user uuid) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT coalesce(
    sum(
      pg_column_size(s.prefix) + pg_column_size(s.key) + pg_column_size(s.value)
      + coalesce(pg_column_size(s.words), 0) + coalesce(pg_column_size(s.embedding), 0)
    ), 0
  )::bigint
  FROM public.store s WHERE s.user_id = p_user
$$;

-- Lets a person's writes that make the store grow happen one after the other, so that the sum at
-- the end of each is right. The caller has bound the user.
CREATE OR REPLACE FUNCTION tenant.begin_growth(p_user uuid) RETURNS void
LANGUAGE sql AS $$
  SELECT FROM public.users u WHERE u.user_id = p_user FOR NO KEY UPDATE
$$;

-- Refuses what was written where the person then keeps more than they may. Of memories and of other
-- items, whatever their size, there are as many as can be searched in a moment.
CREATE OR REPLACE FUNCTION tenant.require_memory(p_user uuid, p_defaults jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF tenant.memory_bytes(p_user)
      > (tenant.limits_of(p_user, p_defaults) ->> 'memory_bytes')::bigint
    OR (
      SELECT count(*) > 50000
        OR count(*) FILTER (WHERE s.prefix = tenant.memory_prefix(p_user)) > 10000
      FROM public.store s WHERE s.user_id = p_user
    )
  THEN
    RAISE EXCEPTION 'the store is full' USING ERRCODE = 'ST008', DETAIL = 'memory_bytes';
  END IF;
END $$;

-- Says that what this transaction writes to the store comes from a run.
CREATE OR REPLACE FUNCTION tenant.begin_origin(p_run uuid) RETURNS void
LANGUAGE sql AS $$
  SELECT set_config('app.run_id', p_run::text, true)
$$;

-- Keeps what is derived from an item's value with it, whoever writes it. Where it comes from is the
-- transaction's to say: what a run writes is from its conversation, what a person corrects stays so.
CREATE OR REPLACE FUNCTION tenant.index_item() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  run uuid := nullif(current_setting('app.run_id', true), '')::uuid;
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.value = OLD.value THEN
    RETURN NEW;
  END IF;
  NEW.words := tenant.words_of(NEW.value);
  NEW.embedding := NULL;
  NEW.embedding_model := NULL;
  IF run IS NOT NULL OR TG_OP = 'INSERT' THEN
    NEW.origin_run_id := run;
    NEW.origin_thread_id := (
      SELECT r.thread_id FROM public.runs r WHERE r.user_id = NEW.user_id AND r.run_id = run
    );
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER index_item BEFORE INSERT OR UPDATE OF value ON public.store
  FOR EACH ROW EXECUTE FUNCTION tenant.index_item();

-- The prefix of a person's memories.
CREATE OR REPLACE FUNCTION tenant.memory_prefix(p_user uuid) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT p_user::text || '.memories'
$$;

-- The id that a key is, if it is one.
CREATE OR REPLACE FUNCTION tenant.as_uuid(p_key text) RETURNS uuid
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN p_key ~ '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' THEN p_key::uuid
  END
$$;

-- A person's memories: all, or those under some keys. One of a conversation that is gone comes from none. What else an earlier
-- version may have let a graph keep in their namespace is none.
CREATE OR REPLACE FUNCTION tenant.memories_of(p_user uuid, p_keys text[] DEFAULT NULL)
RETURNS TABLE (
  memory_id uuid, content text, thread_id uuid, run_id uuid,
  created_at timestamptz, updated_at timestamptz
)
LANGUAGE sql STABLE AS $$
  SELECT tenant.as_uuid(s.key), s.value ->> 'content', t.thread_id,
         CASE WHEN t.thread_id IS NOT NULL THEN s.origin_run_id END, s.created_at, s.updated_at
  FROM public.store s
  LEFT JOIN public.threads t
    ON t.user_id = s.user_id AND t.thread_id = s.origin_thread_id AND t.deleted_at IS NULL
  WHERE s.user_id = p_user AND s.prefix = tenant.memory_prefix(p_user)
    AND (p_keys IS NULL OR s.key = ANY (p_keys))
    AND (s.expires_at IS NULL OR s.expires_at > (SELECT now()))
    AND tenant.as_uuid(s.key) IS NOT NULL AND s.value ->> 'content' IS NOT NULL
$$;

-- A page of a person's memories, the newest first, or one of them; with how many there are.
CREATE OR REPLACE FUNCTION tenant.list_memories(
  p_user uuid, p_memory uuid, p_limit int, p_offset int
) RETURNS TABLE (
  memory_id uuid, content text, thread_id uuid, run_id uuid,
  created_at timestamptz, updated_at timestamptz
)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN QUERY
    SELECT m.*
    FROM tenant.memories_of(
      p_user, CASE WHEN p_memory IS NOT NULL THEN ARRAY[p_memory::text] END
    ) m
    ORDER BY m.updated_at DESC, m.memory_id
    LIMIT p_limit OFFSET p_offset;
END $$;

-- Whether there is anything to recall.
CREATE OR REPLACE FUNCTION tenant.has_memories(p_user uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN EXISTS (
    SELECT FROM public.store s
    WHERE s.user_id = p_user AND s.prefix = tenant.memory_prefix(p_user)
  );
END $$;

-- How many memories a person has.
CREATE OR REPLACE FUNCTION tenant.count_memories(p_user uuid) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN (SELECT count(*) FROM tenant.memories_of(p_user));
END $$;

-- Keeps a memory under an id, for a run or for the person themselves. What is known already, word
-- for word or under the same id, is not kept twice: the memory that there is comes back.
CREATE OR REPLACE FUNCTION tenant.remember(
  p_user uuid, p_run uuid, p_fence bigint, p_memory uuid, p_content text, p_defaults jsonb
) RETURNS TABLE (
  memory_id uuid, content text, thread_id uuid, run_id uuid,
  created_at timestamptz, updated_at timestamptz, is_new boolean
)
LANGUAGE plpgsql AS $$
DECLARE
  known uuid;
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM tenant.begin_growth(p_user);
  SELECT m.memory_id INTO known FROM tenant.memories_of(p_user) m
  WHERE m.memory_id = p_memory OR m.content = p_content
  ORDER BY m.memory_id = p_memory DESC, m.created_at LIMIT 1;
  IF known IS NULL THEN
    IF p_run IS NOT NULL THEN
      PERFORM tenant.begin_origin(p_run);
    END IF;
    DELETE FROM public.store s  -- one whose time is over
    WHERE s.user_id = p_user AND s.prefix = tenant.memory_prefix(p_user)
      AND s.key = p_memory::text;
    INSERT INTO public.store (user_id, prefix, key, value)
    VALUES (
      p_user, tenant.memory_prefix(p_user), p_memory::text,
      jsonb_build_object('content', p_content)
    );
    PERFORM tenant.require_memory(p_user, p_defaults);
  END IF;
  IF p_run IS NOT NULL THEN
    PERFORM tenant.hold_fence(p_run, p_fence);
  END IF;
  RETURN QUERY
    SELECT m.*, known IS NULL
    FROM tenant.memories_of(p_user, ARRAY[coalesce(known, p_memory)::text]) m;
END $$;

-- Corrects a memory; nothing comes back where there is none. It comes from where it came from.
CREATE OR REPLACE FUNCTION tenant.edit_memory(
  p_user uuid, p_memory uuid, p_content text, p_defaults jsonb
) RETURNS TABLE (
  memory_id uuid, content text, thread_id uuid, run_id uuid,
  created_at timestamptz, updated_at timestamptz
)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM tenant.begin_growth(p_user);
  UPDATE public.store s
  SET value = jsonb_build_object('content', p_content), updated_at = clock_timestamp()
  WHERE s.user_id = p_user AND s.prefix = tenant.memory_prefix(p_user)
    AND s.key = p_memory::text
    AND (s.expires_at IS NULL OR s.expires_at > (SELECT now()));
  IF FOUND THEN
    PERFORM tenant.require_memory(p_user, p_defaults);
  END IF;
  RETURN QUERY SELECT m.* FROM tenant.memories_of(p_user, ARRAY[p_memory::text]) m;
END $$;

-- Forgets a memory, or all of them, for a run or for the person themselves; how many those were.
CREATE OR REPLACE FUNCTION tenant.forget(
  p_user uuid, p_run uuid, p_fence bigint, p_memory uuid
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  forgotten bigint;
BEGIN
  PERFORM tenant.begin_write(p_user);
  DELETE FROM public.store s
  WHERE s.user_id = p_user AND s.prefix = tenant.memory_prefix(p_user)
    AND (p_memory IS NULL OR s.key = p_memory::text);
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  IF p_run IS NOT NULL THEN
    PERFORM tenant.hold_fence(p_run, p_fence);
  END IF;
  RETURN forgotten;
END $$;

-- Drops items whose time is over; done once none is left.
CREATE OR REPLACE FUNCTION tenant.drop_expired_items(
  p_user uuid, p_limit int, OUT dropped int, OUT done boolean
) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  DELETE FROM public.store s
  WHERE s.user_id = p_user AND (s.prefix, s.key) IN (
    SELECT o.prefix, o.key FROM public.store o
    WHERE o.user_id = p_user AND o.expires_at <= (SELECT now())
    ORDER BY o.prefix, o.key LIMIT p_limit
    FOR UPDATE
  );
  GET DIAGNOSTICS dropped = ROW_COUNT;
  done := dropped < p_limit;
END $$;
