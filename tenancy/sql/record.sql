-- Reading the record, newest first: everybody's for the maintenance role, whose grants leave out which
-- tools people use and with what; one's own, with what one wrote oneself, for the service role.

-- Facts on record, of one person or operator, of an action, of a time, where asked for; those before
-- `p_before`. `user_id` and `by_user_id` are known while the person's reference is there.
CREATE OR REPLACE FUNCTION tenant.read_record(
  p_user uuid, p_by uuid, p_account text, p_action text, p_from timestamptz, p_to timestamptz,
  p_before bigint, p_limit int
) RETURNS TABLE (
  audit_id bigint, at timestamptz, actor text, action text, reference uuid, user_id uuid,
  by_reference uuid, by_user_id uuid, account text, route text, object text, thread_id uuid,
  run_id uuid, approval_id uuid, decision text, why text, expires_at timestamptz
)
-- One plan for what is asked, and none for all that could be.
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  whom uuid := (SELECT r.reference FROM public.audit_references r WHERE r.user_id = p_user);
  by_whom uuid := (SELECT r.reference FROM public.audit_references r WHERE r.user_id = p_by);
  acting text := coalesce(by_whom::text, p_account);
BEGIN
  IF p_user IS NOT NULL AND whom IS NULL OR p_by IS NOT NULL AND by_whom IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY
  SELECT a.audit_id, a.at, a.actor, a.action, a.reference, u.user_id, a.by_reference, o.user_id,
    a.account, a.route, a.object, a.thread_id, a.run_id, a.approval_id, a.decision, a.why,
    a.expires_at
  FROM (
    SELECT f.audit_id, f.at, f.actor, f.action, f.reference, f.by_reference, f.account, f.route,
      f.object, f.thread_id, f.run_id, f.approval_id, f.decision, f.why, f.expires_at
    FROM public.audit f
    WHERE (whom IS NULL OR f.reference = whom)
      -- As the index has it.
      AND (acting IS NULL OR coalesce(f.by_reference::text, f.account) = acting
        AND f.route IS NOT NULL)
      AND (p_action IS NULL OR f.action = p_action)
      AND (p_from IS NULL OR f.at >= p_from) AND (p_to IS NULL OR f.at < p_to)
      AND (p_before IS NULL OR f.audit_id < p_before)
    ORDER BY f.audit_id DESC LIMIT p_limit
  ) a
  LEFT JOIN public.audit_references u ON u.reference = a.reference
  LEFT JOIN public.audit_references o ON o.reference = a.by_reference
  ORDER BY a.audit_id DESC;
END $$;

-- What was done with a person's account, before `p_before` where that is said: which kind of actor did
-- it, not who of them. Names and reasons of the person's own are told to nobody else.
CREATE OR REPLACE FUNCTION tenant.read_own_record(p_user uuid, p_before bigint, p_limit int)
RETURNS TABLE (
  audit_id bigint, at timestamptz, actor text, action text, route text, object text,
  thread_id uuid, run_id uuid, approval_id uuid, server text, tool text, decision text, why text,
  reason text, expires_at timestamptz
)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN QUERY
  SELECT a.audit_id, a.at, a.actor, a.action, a.route, a.object, a.thread_id, a.run_id,
    a.approval_id, coalesce(a.server, said.texts ->> 'server'),
    coalesce(a.tool, said.texts ->> 'tool'), a.decision, a.why, said.texts ->> 'reason',
    a.expires_at
  FROM (
    SELECT f.* FROM public.audit f
    WHERE f.reference = tenant.own_reference() AND (p_before IS NULL OR f.audit_id < p_before)
    ORDER BY f.audit_id DESC LIMIT p_limit
  ) a
  CROSS JOIN LATERAL (
    SELECT jsonb_object_agg(t.kind, t.text) AS texts FROM public.audit_texts t
    WHERE t.user_id = p_user AND t.audit_id = a.audit_id
  ) said
  ORDER BY a.audit_id DESC;
END $$;
