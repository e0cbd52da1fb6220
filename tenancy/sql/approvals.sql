-- Questions to people, and their one decision each, behind the tenant door. Locks come in the order of
-- `runs.sql`; whoever asks, decides or closes a question holds its run, so that of two at once the
-- second finds what the first has left.

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

-- Takes a person's decisions on what a run asks, all of them or none; the run goes on with the last
-- that is open. `refused` says why none was taken, and `approval_id` because of which:
--   unknown  there is no such question of this run
--   closed   it was decided, or taken back
--   expired  nobody decided in time
--   invalid  it cannot be answered like that
--   changed  what the person saw is not what is asked
-- p_resume is what to keep of how the run is to be streamed from now on. With an idempotency key that
-- was used before, nothing happens again: `is_new` is false.
CREATE OR REPLACE FUNCTION tenant.decide_approvals(
  p_user uuid, p_run uuid, p_decisions jsonb, p_resume jsonb,
  p_candidate uuid, p_route text, p_key text, p_fingerprint bytea
) RETURNS TABLE (
  refused text, approval_id uuid, run_id uuid, is_new boolean, resumed_at timestamptz, last_seq int
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  given record;
  stands public.approvals;
  run record;
  moment timestamptz;
BEGIN
  PERFORM tenant.begin_write(p_user);
  is_new := true;
  IF p_key IS NOT NULL THEN
    -- The run is no candidate of its own: whoever comes second must not find the key to be theirs.
    run_id := tenant.take_idempotency_key(p_user, p_route, p_key, p_fingerprint, p_candidate);
    IF run_id <> p_candidate THEN
      is_new := false;
      RETURN NEXT;
      RETURN;
    END IF;
    UPDATE public.idempotency_keys k SET resource_id = p_run
    WHERE k.user_id = p_user AND k.route = p_route AND k.key = p_key;
  END IF;
  run_id := p_run;
  PERFORM 1 FROM public.threads t JOIN public.runs r USING (user_id, thread_id)
  WHERE r.user_id = p_user AND r.run_id = p_run AND t.deleted_at IS NULL
  FOR NO KEY UPDATE OF t;
  SELECT r.thread_id, r.state INTO run
  FROM public.runs r JOIN public.threads t USING (user_id, thread_id)
  WHERE r.user_id = p_user AND r.run_id = p_run AND t.deleted_at IS NULL
  FOR NO KEY UPDATE OF r;
  moment := clock_timestamp();
  FOR given IN
    SELECT d.* FROM jsonb_to_recordset(p_decisions) AS d (
      approval_id uuid, decision text, arguments_sha256 text
    )
    ORDER BY d.approval_id
  LOOP
    approval_id := given.approval_id;
    SELECT a.* INTO stands FROM public.approvals a
    WHERE a.user_id = p_user AND a.approval_id = given.approval_id AND a.run_id = p_run
      AND run.thread_id IS NOT NULL
    FOR NO KEY UPDATE;
    refused := CASE
      WHEN stands.approval_id IS NULL THEN 'unknown'
      WHEN stands.state = 'expired' THEN 'expired'
      WHEN stands.state <> 'open' OR run.state <> 'waiting' THEN 'closed'
      WHEN stands.expires_at <= moment THEN 'expired'
      WHEN given.decision = ANY (stands.decisions) IS NOT TRUE THEN 'invalid'
      WHEN coalesce(
        decode(given.arguments_sha256, 'hex') <> stands.arguments_sha256,
        given.decision IN ('approve', 'edit', 'repeat')
      ) THEN 'changed'
    END;
    IF refused IS NOT NULL THEN
      IF refused <> 'unknown' THEN
        PERFORM tenant.audit_approval('person', 'refused', stands, refused, given.decision);
      END IF;
      DELETE FROM public.idempotency_keys k
      WHERE k.user_id = p_user AND k.route = p_route AND k.key = p_key;
      RETURN NEXT;
      RETURN;
    END IF;
  END LOOP;
  approval_id := NULL;
  FOR stands IN
    UPDATE public.approvals a
    SET state = 'decided', decision = d.decision, decided_arguments = d.arguments,
        decided_sha256 = decode(d.decided_sha256, 'hex'), reason = d.reason, replies = d.replies,
        -- What is asked at the first use alone is open from then on; else only as the person says.
        for_thread = a.subject IS NOT NULL AND d.decision = 'approve' AND (
          d.scope IS NOT DISTINCT FROM 'thread'
          OR NOT coalesce((a.asked ->> 'may_open_thread')::boolean, false)
        ),
        decided_at = moment
    FROM jsonb_to_recordset(p_decisions) AS d (
      approval_id uuid, decision text, arguments jsonb, decided_sha256 text, reason text,
      replies jsonb, scope text
    )
    WHERE a.user_id = p_user AND a.approval_id = d.approval_id
    RETURNING a.*
  LOOP
    PERFORM tenant.audit_approval('person', 'decided', stands);
  END LOOP;
  resumed_at := tenant.go_on(p_user, p_run, p_resume);
  UPDATE public.threads t SET updated_at = moment
  WHERE t.user_id = p_user AND t.thread_id = run.thread_id;
  SELECT coalesce(max(e.seq), 0) INTO last_seq
  FROM public.run_events e WHERE e.user_id = p_user AND e.run_id = p_run;
  RETURN NEXT;
END $$;

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

-- Puts on record that a decision was refused before it came to the question's row.
CREATE OR REPLACE FUNCTION tenant.refuse_decision(
  p_user uuid, p_approval uuid, p_decision text, p_why text
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  stands public.approvals;
BEGIN
  PERFORM tenant.begin_write(p_user);
  SELECT a.* INTO stands FROM public.approvals a
  WHERE a.user_id = p_user AND a.approval_id = p_approval;
  IF FOUND THEN
    PERFORM tenant.audit_approval('person', 'refused', stands, p_why, p_decision);
  END IF;
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

-- The decision that opened a thread for calls like one: of this tool, about the same, while the same
-- rules hold and the decision does. Null if there is none.
CREATE OR REPLACE FUNCTION tenant.find_permission(
  p_user uuid, p_thread uuid, p_server text, p_tool text, p_subject text, p_policy_version text
) RETURNS uuid
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN (
    SELECT a.approval_id FROM public.approvals a
    WHERE a.user_id = p_user AND a.thread_id = p_thread AND a.state = 'decided' AND a.for_thread
      AND a.server IS NOT DISTINCT FROM p_server AND a.tool = p_tool AND a.subject = p_subject
      AND a.policy_version = p_policy_version AND a.expires_at > (SELECT clock_timestamp())
    ORDER BY a.created_at DESC LIMIT 1
  );
END $$;
