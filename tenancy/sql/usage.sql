-- What was used, by the hour or the day of UTC.

-- The whole buckets that a time lies in. Without an end: now; without a beginning: a day earlier.
CREATE OR REPLACE FUNCTION tenant.usage_range(
  p_from timestamptz, p_to timestamptz, p_bucket text,
  OUT first timestamptz, OUT last timestamptz, OUT buckets int
)
LANGUAGE plpgsql STABLE AS $$
DECLARE
  step interval := ('1 ' || p_bucket)::interval;
BEGIN
  last := date_trunc(p_bucket, coalesce(p_to, clock_timestamp()), 'UTC');
  IF p_to IS NULL OR last < p_to THEN
    last := last + step;
  END IF;
  first := date_trunc(p_bucket, coalesce(p_from, last - interval '24 hours'), 'UTC');
  buckets := extract(epoch FROM last - first) / extract(epoch FROM step);
END $$;

-- When each bucket of a range begins, reckoned where a day always has 24 hours.
CREATE OR REPLACE FUNCTION tenant.usage_buckets(
  p_first timestamptz, p_last timestamptz, p_bucket text
) RETURNS SETOF timestamptz
LANGUAGE sql STABLE AS $$
  SELECT b AT TIME ZONE 'UTC'
  FROM generate_series(
    p_first AT TIME ZONE 'UTC', p_last AT TIME ZONE 'UTC' - interval '1 second',
    ('1 ' || p_bucket)::interval
  ) AS b
$$;

-- A person's usage in each bucket of a range, those without any included. No row when there would be
-- none, or more than `p_most`.
CREATE OR REPLACE FUNCTION tenant.read_usage(
  p_user uuid, p_from timestamptz, p_to timestamptz, p_bucket text, p_most int
) RETURNS TABLE (
  last timestamptz, start timestamptz, prompt_tokens bigint, output_tokens bigint, calls bigint,
  runs bigint, tool_calls bigint, seat_seconds float8, wait_seconds float8,
  longest_wait_seconds float8
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  span record;
BEGIN
  PERFORM tenant.begin_read(p_user);
  span := tenant.usage_range(p_from, p_to, p_bucket);
  IF span.buckets NOT BETWEEN 1 AND p_most THEN
    RETURN;
  END IF;
  RETURN QUERY
  WITH used AS (
    SELECT date_trunc(p_bucket, h.hour, 'UTC') AS start,
      sum(h.prompt_tokens)::bigint AS prompt_tokens, sum(h.output_tokens)::bigint AS output_tokens,
      sum(h.calls) AS calls, sum(h.runs) AS runs, sum(h.tool_calls) AS tool_calls,
      sum(h.seat_seconds) AS seat_seconds, sum(h.wait_seconds) AS wait_seconds,
      max(h.longest_wait_seconds) AS longest_wait_seconds
    FROM public.usage_hours h
    WHERE h.user_id = p_user AND h.hour >= span.first AND h.hour < span.last
    GROUP BY 1
  )
  SELECT span.last, b.start, coalesce(u.prompt_tokens, 0), coalesce(u.output_tokens, 0),
    coalesce(u.calls, 0), coalesce(u.runs, 0), coalesce(u.tool_calls, 0),
    coalesce(u.seat_seconds, 0), coalesce(u.wait_seconds, 0), coalesce(u.longest_wait_seconds, 0)
  FROM tenant.usage_buckets(span.first, span.last, p_bucket) AS b (start)
  LEFT JOIN used u ON u.start = b.start
  ORDER BY b.start;
END $$;

-- Adds calls of tools to a person's usage, for an attempt that another one goes on from.
CREATE OR REPLACE FUNCTION tenant.count_tool_calls(
  p_user uuid, p_run uuid, p_fence bigint, p_calls int
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM tenant.hold_fence(p_run, p_fence);
  PERFORM tenant.count_usage(p_user, 0, p_calls);
END $$;
