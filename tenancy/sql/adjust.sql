-- What operators set: plans and people's limits. For the dispatch role. What is set is in force once
-- it is committed, and on record with who set it: each function's last arguments are who acts, a
-- person or an account, and by what way. Locks come in the order references, plan, limits, claims,
-- models, queues.

-- A person's plan and limits, their own and all that are in force. No row: there is nobody like that.
CREATE OR REPLACE FUNCTION dispatch.limits_set(p_user uuid, p_defaults jsonb) RETURNS TABLE (
  user_id uuid, plan text, limits jsonb, effective jsonb, updated_at timestamptz
)
LANGUAGE sql STABLE AS $$
  SELECT u.user_id, l.plan, coalesce(l.limits, '{}'), tenant.limits_of(u.user_id, p_defaults),
    l.updated_at
  FROM public.users u LEFT JOIN public.user_limits l USING (user_id)
  WHERE u.user_id = p_user
$$;

-- The plans, and how many people have each.
CREATE OR REPLACE FUNCTION dispatch.plans_set() RETURNS TABLE (plan text, limits jsonb, users int)
LANGUAGE sql STABLE AS $$
  SELECT p.plan, p.limits, (
    SELECT count(*)::int FROM public.user_limits l WHERE l.plan = p.plan
  )
  FROM public.plans p ORDER BY p.plan
$$;

-- Has changed limits of these people, NULL: of everybody, take effect now: whoever waits for a seat
-- is weighed anew, and whoever waits to be executed is looked at by the next claim. Returns the
-- calls that were given a seat by it.
CREATE OR REPLACE FUNCTION dispatch.limits_changed(p_users uuid[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
  models text[] := ARRAY(SELECT m.model FROM public.models m ORDER BY m.model);
  granted uuid[] := '{}';
  each text;
  waiting record;
  terms record;
BEGIN
  -- A claim that went by the old limits is over after this; the next one knows the new ones.
  PERFORM pg_advisory_xact_lock(hashtextextended('stoa.claim_runs', 0));
  -- All of them: a call that just asks for a seat goes by the old limits, and is seen after this.
  PERFORM dispatch.hold_models(models);
  FOREACH each IN ARRAY models LOOP
    FOR waiting IN
      SELECT DISTINCT c.user_id FROM public.model_calls c
      WHERE c.model = each AND c.seat IS NULL AND (p_users IS NULL OR c.user_id = ANY (p_users))
      ORDER BY c.user_id
    LOOP
      terms := dispatch.terms_of(waiting.user_id, each);
      PERFORM dispatch.weigh_user(waiting.user_id, each, terms.weight, terms.most_seats, true);
    END LOOP;
    granted := granted || dispatch.grant_seats(each);
  END LOOP;
  FOR waiting IN
    SELECT q.user_id FROM public.run_queues q
    WHERE NOT q.claimable AND (p_users IS NULL OR q.user_id = ANY (p_users)) AND EXISTS (
      SELECT 1 FROM public.runs r WHERE r.user_id = q.user_id AND r.state = 'pending'
    )
    ORDER BY q.user_id
  LOOP
    PERFORM tenant.call_up(waiting.user_id);
  END LOOP;
  RETURN granted;
END $$;

-- Sets a person's plan and their own limits, in place of what they had. Says `set`, `no_user` or
-- `no_plan`.
CREATE OR REPLACE FUNCTION dispatch.set_limits(
  p_user uuid, p_plan text, p_limits jsonb, p_by uuid, p_account text, p_route text,
  OUT outcome text, OUT granted uuid[]
)
LANGUAGE plpgsql AS $$
BEGIN
  granted := '{}';
  PERFORM tenant.begin_act(p_by, p_user);
  -- Held, so that an erasure that begins now deletes what is set; one that has begun refuses it.
  PERFORM 1 FROM public.users u WHERE u.user_id = p_user AND u.state <> 'erasing' FOR KEY SHARE;
  IF NOT FOUND THEN
    outcome := 'no_user';
    RETURN;
  END IF;
  IF p_plan IS NOT NULL THEN
    -- Held, so that nobody deletes it meanwhile.
    PERFORM 1 FROM public.plans p WHERE p.plan = p_plan FOR KEY SHARE;
    IF NOT FOUND THEN
      outcome := 'no_plan';
      RETURN;
    END IF;
  END IF;
  INSERT INTO public.user_limits (user_id, plan, limits) VALUES (p_user, p_plan, p_limits)
  ON CONFLICT (user_id) DO UPDATE
    SET plan = EXCLUDED.plan, limits = EXCLUDED.limits, updated_at = clock_timestamp();
  outcome := 'set';
  PERFORM tenant.audit_act(p_by, p_account, 'limits_set', p_route, p_user, p_plan);
  granted := dispatch.limits_changed(ARRAY[p_user]);
END $$;

-- Takes a person's plan and own limits away. Says `cleared` or `no_user`.
CREATE OR REPLACE FUNCTION dispatch.clear_limits(
  p_user uuid, p_by uuid, p_account text, p_route text, OUT outcome text, OUT granted uuid[]
)
LANGUAGE plpgsql AS $$
BEGIN
  granted := '{}';
  outcome := 'no_user';
  PERFORM tenant.begin_act(p_by, p_user);
  -- As when they are set.
  PERFORM 1 FROM public.users u WHERE u.user_id = p_user AND u.state <> 'erasing' FOR KEY SHARE;
  IF FOUND THEN
    DELETE FROM public.user_limits l WHERE l.user_id = p_user;
    outcome := 'cleared';
    PERFORM tenant.audit_act(p_by, p_account, 'limits_cleared', p_route, p_user);
    granted := dispatch.limits_changed(ARRAY[p_user]);
  END IF;
END $$;

-- Whose limits a plan is part of; NULL: everybody's.
CREATE OR REPLACE FUNCTION dispatch.users_of_plan(p_plan text) RETURNS uuid[]
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_plan <> 'default' THEN ARRAY(
    SELECT l.user_id FROM public.user_limits l WHERE l.plan = p_plan
  ) END
$$;

-- Makes a plan, or changes it for everybody who has it. Returns the calls that were given a seat.
CREATE OR REPLACE FUNCTION dispatch.set_plan(
  p_plan text, p_limits jsonb, p_by uuid, p_account text, p_route text
) RETURNS uuid[]
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_act(p_by);
  INSERT INTO public.plans (plan, limits) VALUES (p_plan, p_limits)
  ON CONFLICT (plan) DO UPDATE SET limits = EXCLUDED.limits;
  PERFORM tenant.audit_act(p_by, p_account, 'plan_set', p_route, NULL, p_plan);
  RETURN dispatch.limits_changed(dispatch.users_of_plan(p_plan));
END $$;

-- Deletes a plan that nobody has. Says `deleted`, `in_use` or `no_plan`.
CREATE OR REPLACE FUNCTION dispatch.delete_plan(
  p_plan text, p_by uuid, p_account text, p_route text, OUT outcome text, OUT granted uuid[]
)
LANGUAGE plpgsql AS $$
BEGIN
  granted := '{}';
  PERFORM tenant.begin_act(p_by);
  -- Held, so that nobody is given it meanwhile.
  PERFORM 1 FROM public.plans p WHERE p.plan = p_plan FOR UPDATE;
  IF NOT FOUND THEN
    outcome := 'no_plan';
  ELSIF EXISTS (SELECT 1 FROM public.user_limits l WHERE l.plan = p_plan) THEN
    outcome := 'in_use';
  ELSE
    DELETE FROM public.plans p WHERE p.plan = p_plan;
    outcome := 'deleted';
    PERFORM tenant.audit_act(p_by, p_account, 'plan_deleted', p_route, NULL, p_plan);
    granted := dispatch.limits_changed(dispatch.users_of_plan(p_plan));
  END IF;
END $$;
