-- The ledger of tool calls that may change the world, behind the tenant door. Locks are taken in one
-- order: user, thread, run, the person's connection to the server, the call's row.

-- Says whether a call may be made now, and commits that it is about to be. `answer` is
--   begun         make it, under this key; where nothing is recorded, the key is null
--   done, failed  it was made before: the result is what came of it
--   in_doubt      it was begun before, nobody knows what came of it, and it may not be repeated
--   other         another call stands in its place
--   stale         the connection has changed since its credential was read
--   disconnected  the person has switched the server off, or taken it away
-- The connection's row is held: a change that was committed is seen, one under way waits.
-- p_url is the address of a person's own server, p_version null where nobody's credential is used.
-- A call that was begun before is repeated within p_repeat_seconds of its first beginning.
CREATE OR REPLACE FUNCTION tenant.begin_effect(
  p_user uuid, p_run uuid, p_fence bigint, p_thread uuid, p_message text, p_call text,
  p_server text, p_url text, p_version bigint, p_tool text, p_arguments_sha256 bytea,
  p_recorded boolean, p_repeat_seconds float8,
  OUT answer text, OUT key uuid, OUT result jsonb
)
LANGUAGE plpgsql AS $$
DECLARE
  link record;
  effect record;
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM 1 FROM public.threads t
  WHERE t.user_id = p_user AND t.thread_id = p_thread FOR KEY SHARE;
  PERFORM tenant.hold_fence(p_run, p_fence, p_thread);
  SELECT c.version, c.enabled, c.url INTO link
  FROM public.connections c WHERE c.user_id = p_user AND c.server = p_server FOR SHARE;
  answer := CASE
    WHEN link IS NULL AND p_url IS NULL THEN
      CASE WHEN coalesce(p_version, 1) = 1 THEN 'begun' ELSE 'stale' END
    WHEN link IS NULL OR NOT link.enabled OR link.url IS DISTINCT FROM p_url THEN 'disconnected'
    WHEN link.version <> coalesce(p_version, link.version) THEN 'stale'
    ELSE 'begun'
  END;
  IF NOT p_recorded THEN
    RETURN;
  END IF;
  SELECT e.server, e.tool, e.arguments_sha256, e.state, e.key, e.result, e.started_at INTO effect
  FROM public.effects e
  WHERE e.user_id = p_user AND e.thread_id = p_thread AND e.message_id = p_message
    AND e.tool_call_id = p_call
  FOR UPDATE;
  IF effect IS NULL THEN
    IF answer = 'begun' THEN
      INSERT INTO public.effects AS e (
        user_id, thread_id, message_id, tool_call_id, run_id, fence, server, tool, key,
        arguments_sha256, connection_version, state
      )
      VALUES (
        p_user, p_thread, p_message, p_call, p_run, p_fence, p_server, p_tool, gen_random_uuid(),
        p_arguments_sha256, p_version, 'started'
      )
      ON CONFLICT (user_id, thread_id, message_id, tool_call_id) DO NOTHING
      RETURNING e.key INTO begin_effect.key;
      IF NOT FOUND THEN
        answer := 'in_doubt';
      END IF;
    END IF;
    RETURN;
  END IF;
  IF (effect.server, effect.tool, effect.arguments_sha256)
    <> (p_server, p_tool, p_arguments_sha256)
  THEN
    answer := 'other';
  ELSIF effect.state IN ('done', 'failed') THEN
    answer := effect.state;
    result := effect.result;
  ELSIF effect.state = 'started' AND NOT effect.started_at
    > (SELECT clock_timestamp()) - make_interval(secs => p_repeat_seconds)
  THEN
    answer := 'in_doubt';
  ELSIF answer = 'begun' THEN
    key := effect.key;
    UPDATE public.effects e
    SET run_id = p_run, fence = p_fence, connection_version = p_version, state = 'started'
    WHERE e.user_id = p_user AND e.thread_id = p_thread AND e.message_id = p_message
      AND e.tool_call_id = p_call;
  END IF;
END $$;

-- Records what came of a call that was begun under this key: `done` or `failed` with a result, or
-- `asking` where it stopped at a question, to be made again. Says whether there was such a call.
-- The commit waits for no disk: what a crash of the database forgets is in doubt, never made twice,
-- and the checkpoint that holds the result takes this to the disk with it.
CREATE OR REPLACE FUNCTION tenant.end_effect(
  p_user uuid, p_run uuid, p_fence bigint, p_thread uuid, p_message text, p_call text,
  p_key uuid, p_state text, p_result jsonb
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM tenant.begin_write(p_user);
  PERFORM tenant.hold_fence(p_run, p_fence, p_thread);
  UPDATE public.effects e
  SET state = p_state, result = p_result,
      ended_at = CASE WHEN p_state <> 'asking' THEN clock_timestamp() END
  WHERE e.user_id = p_user AND e.thread_id = p_thread AND e.message_id = p_message
    AND e.tool_call_id = p_call AND e.key = p_key AND e.state IN ('started', p_state);
  RETURN FOUND;
END $$;

-- What the ledger holds of a call.
CREATE OR REPLACE FUNCTION tenant.find_effect(
  p_user uuid, p_thread uuid, p_message text, p_call text
) RETURNS TABLE (server text, tool text, arguments_sha256 bytea, state text, result jsonb)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN QUERY
  SELECT e.server, e.tool, e.arguments_sha256, e.state, e.result FROM public.effects e
  WHERE e.user_id = p_user AND e.thread_id = p_thread AND e.message_id = p_message
    AND e.tool_call_id = p_call;
END $$;
