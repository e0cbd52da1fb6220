-- What a person may use, and what they have used.

-- A person's limits over the service's own, which come from its settings: of the plan `default`,
-- of their plan, and their own. A null is no limit.
CREATE OR REPLACE FUNCTION tenant.limits_of(p_user uuid, p_defaults jsonb) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  SELECT p_defaults || coalesce(d.limits, '{}') || coalesce(p.limits, '{}')
    || coalesce(u.limits, '{}')
  FROM (SELECT) AS one
  LEFT JOIN public.plans d ON d.plan = 'default'
  LEFT JOIN public.user_limits u ON u.user_id = p_user
  LEFT JOIN public.plans p ON p.plan = u.plan
$$;

-- Counts one request against `requests_per_minute`, by the generic cell rate algorithm: a whole
-- minute's worth may come at once. Its own transaction. Also says what else the person may use.
-- Times in seconds: until nothing is used any more, and, when it is refused, until it is not.
-- Nobody is let in who is being erased. That is no lock, which each request would pay for: what is
-- counted beside an erasure's beginning is deleted with the rest, or fails for want of its user.
CREATE OR REPLACE FUNCTION tenant.admit_request(p_user uuid, p_defaults jsonb)
RETURNS TABLE (
  limits jsonb, admitted boolean, remaining int, reset_seconds float8, retry_seconds float8
)
LANGUAGE plpgsql AS $$
DECLARE
  spacing interval;
  at timestamptz;
  earlier timestamptz;
BEGIN
  -- What a crash forgets of it is worth no wait for the disk.
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM set_config('app.user_id', p_user::text, true);
  IF NOT EXISTS (
    SELECT FROM public.users u WHERE u.user_id = p_user AND u.state <> 'erasing'
  ) THEN
    RAISE EXCEPTION 'nothing is done for this user any more' USING ERRCODE = 'ST003';
  END IF;
  limits := tenant.limits_of(p_user, p_defaults);
  IF limits ->> 'requests_per_minute' IS NULL THEN
    RETURN QUERY SELECT limits, true, NULL::int, NULL::float8, NULL::float8;
    RETURN;
  END IF;
  -- Rounded down, to what a clock can tell apart, so that a whole minute's worth fits.
  spacing := make_interval(
    secs => floor(60e6 / (limits ->> 'requests_per_minute')::float8) / 1e6
  );
  at := clock_timestamp();
  -- An arrival further off than a minute is of a clock that was set back since.
  INSERT INTO public.request_rates AS r (user_id, arrival) VALUES (p_user, at + spacing)
  ON CONFLICT (user_id) DO UPDATE
    SET arrival = greatest(least(r.arrival, at + interval '1 minute'), at) + spacing
    WHERE greatest(least(r.arrival, at + interval '1 minute'), at) + spacing
      <= at + interval '1 minute'
  RETURNING arrival INTO earlier;
  admitted := FOUND;
  IF NOT admitted THEN
    SELECT least(r.arrival, at + interval '1 minute') INTO STRICT earlier
    FROM public.request_rates r WHERE r.user_id = p_user;
  END IF;
  reset_seconds := extract(epoch FROM earlier - at);
  remaining := greatest(
    0, floor(extract(epoch FROM at + interval '1 minute' - earlier) / extract(epoch FROM spacing))
  );
  retry_seconds := CASE WHEN admitted THEN 0
    ELSE greatest(0, extract(epoch FROM earlier + spacing - interval '1 minute' - at)) END;
  RETURN NEXT;
END $$;

-- Tokens that a person has used since a moment, in hours of usage.
CREATE OR REPLACE FUNCTION tenant.tokens_since(p_user uuid, p_since timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(h.prompt_tokens + h.output_tokens), 0)::bigint
  FROM public.usage_hours h WHERE h.user_id = p_user AND h.hour >= p_since
$$;

-- Which token budget is used up, and when it begins anew; no row when none is. Days and months
-- are those of UTC.
CREATE OR REPLACE FUNCTION tenant.exhausted_budget(
  p_user uuid, p_limits jsonb, p_at timestamptz DEFAULT clock_timestamp()
) RETURNS TABLE (name text, resets_at timestamptz)
LANGUAGE plpgsql STABLE AS $$
DECLARE
  day timestamptz;
  month timestamptz;
BEGIN
  IF p_limits ->> 'tokens_per_day' IS NULL AND p_limits ->> 'tokens_per_month' IS NULL THEN
    RETURN;
  END IF;
  day := date_trunc('day', p_at, 'UTC');
  month := date_trunc('month', p_at, 'UTC');
  -- The one that lasts longer is told: a new day would not help.
  IF tenant.tokens_since(p_user, month) >= (p_limits ->> 'tokens_per_month')::bigint THEN
    RETURN QUERY SELECT 'tokens_per_month',
      (month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC';
  ELSIF tenant.tokens_since(p_user, day) >= (p_limits ->> 'tokens_per_day')::bigint THEN
    RETURN QUERY SELECT 'tokens_per_day', day + interval '24 hours';
  END IF;
END $$;

-- Adds to a person's usage in this hour what belongs to no model. The caller has bound the user.
CREATE OR REPLACE FUNCTION tenant.count_usage(p_user uuid, p_runs int, p_tool_calls int)
RETURNS void
LANGUAGE sql AS $$
  INSERT INTO public.usage_hours AS h (user_id, hour, model, runs, tool_calls)
  VALUES (p_user, date_trunc('hour', clock_timestamp(), 'UTC'), '', p_runs, p_tool_calls)
  ON CONFLICT (user_id, hour, model) DO UPDATE
    SET runs = h.runs + p_runs, tool_calls = h.tool_calls + p_tool_calls;
$$;

-- Refuses a run where one more may not wait, or no tokens are left for it. What is counted here and
-- below is counted for one request of a person's after the other.
CREATE OR REPLACE FUNCTION tenant.require_room(p_user uuid, p_limits jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  most bigint := (p_limits ->> 'queued')::bigint;
  budget record;
BEGIN
  PERFORM 1 FROM public.users u WHERE u.user_id = p_user FOR NO KEY UPDATE;
  IF most <= (
    SELECT count(*) FROM (
      SELECT FROM public.runs r WHERE r.user_id = p_user AND r.state = 'pending' LIMIT most
    ) AS waiting
  ) THEN
    RAISE EXCEPTION 'too many runs wait' USING ERRCODE = 'ST008', DETAIL = 'queued';
  END IF;
  SELECT * INTO budget FROM tenant.exhausted_budget(p_user, p_limits);
  IF FOUND THEN
    RAISE EXCEPTION 'a token budget is used up' USING ERRCODE = 'ST008', DETAIL = budget.name,
      HINT = ceil(extract(epoch FROM budget.resets_at - clock_timestamp()))::text;
  END IF;
END $$;

-- Refuses the thread that was just made where a person then has more than they may.
CREATE OR REPLACE FUNCTION tenant.require_threads(p_user uuid, p_limits jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  most bigint := (p_limits ->> 'threads')::bigint;
BEGIN
  PERFORM 1 FROM public.users u WHERE u.user_id = p_user FOR NO KEY UPDATE;
  IF most < (
    SELECT count(*) FROM (
      SELECT FROM public.threads t
      WHERE t.user_id = p_user AND t.deleted_at IS NULL LIMIT most + 1
    ) AS kept
  ) THEN
    RAISE EXCEPTION 'there are too many threads' USING ERRCODE = 'ST008', DETAIL = 'threads';
  END IF;
END $$;
