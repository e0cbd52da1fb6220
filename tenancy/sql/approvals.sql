-- Questions to people, from the asking to their end, behind the tenant door. Locks come in the order
-- of `runs.sql`; whoever asks or closes a question holds its run.

-- Puts what a run stops at before its person. The caller holds the run. Says whether anything is open
-- then: what was asked before under the same interrupt is not asked again.
-- A server that is the person's own is known by its connection. Where that was taken away meanwhile,
-- the name is treated as theirs.
CREATE OR REPLACE FUNCTION tenant.ask_person(
  p_user uuid, p_run uuid, p_fence bigint, p_asked jsonb, p_expire_seconds float8
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  asked_at timestamptz := clock_timestamp();
  memory bytea := tenant.memory_state(p_user);
  asked public.approvals;
BEGIN
  FOR asked IN
    INSERT INTO public.approvals AS a (
      user_id, thread_id, run_id, fence, interrupt_id, kind, message_id, tool_call_id, server, tool,
      is_own, arguments, arguments_sha256, asked, decisions, subject, policy_version, schema_sha256,
      grant_version, graph_version, memory_sha256, created_at, expires_at
    )
    SELECT p_user, r.thread_id, p_run, p_fence, i.interrupt_id, i.kind, i.message_id, i.tool_call_id,
      i.server, i.tool,
      i.server IS NOT NULL AND CASE
        WHEN c.server IS NULL THEN i.grant_version IS NOT NULL ELSE c.url IS NOT NULL
      END,
      i.arguments, decode(i.arguments_sha256, 'hex'), i.asked,
      ARRAY(SELECT jsonb_array_elements_text(i.decisions)), i.subject, i.policy_version,
      decode(i.schema_sha256, 'hex'), i.grant_version, i.graph_version, memory,
      -- In the order in which they were asked.
      asked_at + i.nth * interval '1 microsecond', asked_at + make_interval(secs => p_expire_seconds)
    FROM ROWS FROM (
      jsonb_to_recordset(p_asked) AS (
        interrupt_id text, kind text, message_id text, tool_call_id text, server text, tool text,
        arguments jsonb, arguments_sha256 text, asked jsonb, decisions jsonb, subject text,
        policy_version text, schema_sha256 text, grant_version bigint, graph_version text
      )
    ) WITH ORDINALITY AS i (
      interrupt_id, kind, message_id, tool_call_id, server, tool, arguments, arguments_sha256, asked,
      decisions, subject, policy_version, schema_sha256, grant_version, graph_version, nth
    )
    JOIN public.runs r ON r.user_id = p_user AND r.run_id = p_run
    LEFT JOIN public.connections c ON c.user_id = p_user AND c.server = i.server
    ON CONFLICT (user_id, run_id, interrupt_id, tool_call_id) DO NOTHING
    RETURNING a.*
  LOOP
    PERFORM tenant.audit_approval('service', 'asked', asked);
  END LOOP;
  RETURN EXISTS (
    SELECT FROM public.approvals a
    WHERE a.user_id = p_user AND a.run_id = p_run AND a.state = 'open'
  );
END $$;

-- What a person's memories are known by: another value, and they have changed.
CREATE OR REPLACE FUNCTION tenant.memory_state(p_user uuid) RETURNS bytea
LANGUAGE sql STABLE AS $$
  SELECT sha256(convert_to(
    coalesce(
      string_agg(s.key || ' ' || extract(epoch FROM s.updated_at), ',' ORDER BY s.key COLLATE "C"), ''
    ),
    'UTF8'
  ))
  FROM public.store s WHERE s.user_id = p_user AND s.prefix = tenant.memory_prefix(p_user)
$$;

-- What became of a run's questions that are closed: decided, or not in time, or not asked any more since
-- the answer came by itself; null for none.
CREATE OR REPLACE FUNCTION tenant.decisions_of(p_user uuid, p_run uuid) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  WITH closed AS MATERIALIZED (
    SELECT * FROM public.approvals a
    WHERE a.user_id = p_user AND a.run_id = p_run AND a.state <> 'open'
  ), memory AS MATERIALIZED (
    -- All of a person's memories are looked at: only where a run has asked anything.
    SELECT tenant.memory_state(p_user) AS state WHERE EXISTS (SELECT FROM closed)
  )
  SELECT jsonb_agg(
    jsonb_build_object(
      'interrupt_id', a.interrupt_id, 'tool_call_id', a.tool_call_id, 'kind', a.kind,
      'server', a.server, 'approval_id', a.approval_id, 'state', a.state, 'decision', a.decision,
      'arguments', a.decided_arguments, 'reason', a.reason, 'replies', a.replies,
      'graph_version', a.graph_version, 'asked_at', a.created_at,
      'memory_changed', a.memory_sha256 IS DISTINCT FROM memory.state
    )
    ORDER BY a.created_at, a.approval_id
  )
  FROM closed AS a, memory
$$;

-- Lets a waiting run go on if nothing of what it asked is open any more; says since when, or null.
-- The caller holds it. One update: see `end_as_cancelled`.
CREATE OR REPLACE FUNCTION tenant.go_on(
  p_user uuid, p_run uuid, p_resume jsonb DEFAULT NULL
) RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
  resumed_at timestamptz;
BEGIN
  IF NOT EXISTS (
    SELECT FROM public.approvals a
    WHERE a.user_id = p_user AND a.run_id = p_run AND a.state = 'open'
  ) THEN
    resumed_at := clock_timestamp();
  END IF;
  IF resumed_at IS NOT NULL OR p_resume IS NOT NULL THEN
    UPDATE public.runs r
    SET state = CASE WHEN resumed_at IS NULL THEN r.state ELSE 'pending' END,
        resume = coalesce(p_resume, r.resume), updated_at = clock_timestamp()
    WHERE r.user_id = p_user AND r.run_id = p_run AND r.state = 'waiting';
  END IF;
  RETURN resumed_at;
END $$;

-- Takes back what a run still asks, when it ends without an answer. The caller holds the run.
CREATE OR REPLACE FUNCTION tenant.supersede_approvals(
  p_user uuid, p_run uuid, p_why text
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  taken_back public.approvals;
BEGIN
  FOR taken_back IN
    UPDATE public.approvals a SET state = 'superseded', decided_at = clock_timestamp()
    WHERE a.user_id = p_user AND a.run_id = p_run AND a.state = 'open'
    RETURNING a.*
  LOOP
    PERFORM tenant.audit_approval('person', 'superseded', taken_back, p_why);
  END LOOP;
END $$;

-- Closes what nobody decided in time of what a run asks; it goes on if that was the last. Says how many
-- those were, and whether it does. Its own transaction.
CREATE OR REPLACE FUNCTION tenant.expire_approvals(
  p_user uuid, p_run uuid
) RETURNS TABLE (expired int, resumed boolean)
LANGUAGE plpgsql AS $$
DECLARE
  closed public.approvals;
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM 1 FROM public.runs r
  WHERE r.user_id = p_user AND r.run_id = p_run AND r.state = 'waiting'
  FOR NO KEY UPDATE;
  expired := 0;
  resumed := false;
  IF FOUND THEN
    FOR closed IN
      UPDATE public.approvals a SET state = 'expired', decided_at = clock_timestamp()
      WHERE a.user_id = p_user AND a.run_id = p_run AND a.state = 'open'
        AND a.expires_at <= (SELECT clock_timestamp())
      RETURNING a.*
    LOOP
      expired := expired + 1;
      PERFORM tenant.audit_approval('service', 'expired', closed);
    END LOOP;
    resumed := expired > 0 AND tenant.go_on(p_user, p_run) IS NOT NULL;
  END IF;
  RETURN NEXT;
END $$;
