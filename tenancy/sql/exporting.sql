-- Taking everything along. A person's rows are read through the tenant door, piece by piece, each piece a
-- transaction of its own that is over before anybody is sent anything: a slow reader holds back nobody's vacuum.

-- Every table with rows of a person's: by their id, or, on record, by their reference. Read from the
-- catalogue: a table that comes later is not forgotten.
CREATE OR REPLACE FUNCTION tenant.own_tables() RETURNS TABLE (name text)
LANGUAGE sql STABLE AS $$
  SELECT c.relname::text FROM pg_class c
  WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND EXISTS (
      SELECT FROM pg_attribute a
      WHERE a.attrelid = c.oid AND a.attname IN ('user_id', 'reference') AND NOT a.attisdropped
    )
  ORDER BY c.relname
$$;

-- Binds the user for reading what is theirs, suspended or not; not while they are being erased.
CREATE OR REPLACE FUNCTION tenant.begin_taking(p_user uuid) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  IF NOT EXISTS (
    SELECT FROM public.users u WHERE u.user_id = p_user AND u.state <> 'erasing'
  ) THEN
    RAISE EXCEPTION 'nothing of this user is read any more' USING ERRCODE = 'ST003';
  END IF;
END $$;

-- Refuses (ST003, ST008) whoever may not take everything along just now: somebody who is being erased, or has
-- done so ten times within an hour. Who is suspended may.
CREATE OR REPLACE FUNCTION tenant.may_export(p_user uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  found_state public.user_state;
  earlier timestamptz;
BEGIN
  PERFORM set_config('app.user_id', p_user::text, true);
  SELECT u.state INTO found_state FROM public.users u WHERE u.user_id = p_user FOR KEY SHARE;
  IF found_state IS NULL OR found_state = 'erasing' THEN
    RAISE EXCEPTION 'nothing of this user is read any more' USING ERRCODE = 'ST003';
  END IF;
  -- Each is on record for long, so nobody fills it with them.
  SELECT a.at INTO earlier FROM public.audit a
  WHERE a.reference = tenant.own_reference() AND a.action = 'exported'
    AND a.at > clock_timestamp() - interval '1 hour'
  ORDER BY a.at DESC OFFSET 9 LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'everything is exported all the time' USING ERRCODE = 'ST008',
      DETAIL = 'exports_per_hour',
      HINT = ceil(extract(epoch FROM earlier + interval '1 hour' - clock_timestamp()))::text;
  END IF;
END $$;

-- Puts on record that a person takes everything along, where they may.
CREATE OR REPLACE FUNCTION tenant.begin_export(p_user uuid) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.may_export(p_user);
  PERFORM tenant.audit(p_user, 'person', 'exported', NULL, NULL, NULL, NULL, NULL, false);
END $$;

-- How a row of a table is read: its columns as JSON, without those withheld, bytes as base64, or as the
-- JSON that they are; and its key, by which the next piece begins.
CREATE OR REPLACE FUNCTION tenant.reading_of(p_table text, p_withheld text[], p_json text[])
RETURNS text
LANGUAGE sql STABLE AS $$
  WITH own AS (
    SELECT format('public.%I', t.name)::regclass AS id FROM tenant.own_tables() t
    WHERE t.name = p_table
  ),
  shown AS (
    SELECT string_agg(
      format(
        CASE
          WHEN a.atttypid <> 'bytea'::regtype THEN 't.%1$I'
          -- JSON has line ends between its values only, where a space says the same.
          WHEN a.attname = ANY (p_json)
            THEN 'replace(replace(convert_from(t.%1$I, ''UTF8''), E''\n'', '' ''), E''\r'', '' '')::json AS %1$I'
          ELSE 'replace(encode(t.%1$I, ''base64''), E''\n'', '''') AS %1$I'
        END, a.attname
      ), ', ' ORDER BY a.attnum
    ) AS columns
    FROM own JOIN pg_attribute a ON a.attrelid = own.id
    WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attname <> ALL (p_withheld)
  ),
  key AS (
    SELECT
      string_agg(format('t.%I', a.attname), ', ' ORDER BY k.place) AS columns,
      string_agg(format('t.%I::text', a.attname), ', ' ORDER BY k.place) AS texts,
      -- Without the user, whom the policy names: an index is entered by what must be equal, and then
      -- by what comes next. Compared as well, it would be read from the user's first row on each time.
      string_agg(format('t.%I', a.attname), ', ' ORDER BY k.place)
        FILTER (WHERE a.attname <> 'user_id') AS compared,
      string_agg(
        format('$1[%s]::%s', k.place, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY k.place
      ) FILTER (WHERE a.attname <> 'user_id') AS last
    FROM own
    JOIN pg_index i ON i.indrelid = own.id AND i.indisprimary
    CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute a ON a.attrelid = own.id AND a.attnum = k.number
  )
  SELECT format(
    'SELECT convert_to(row_to_json(shown)::text, ''UTF8''), ARRAY[%1$s]'
    ' FROM public.%2$I t CROSS JOIN LATERAL (SELECT %3$s) shown'
    ' WHERE $1 IS NULL OR %4$s ORDER BY %5$s LIMIT $2',
    key.texts, p_table, shown.columns,
    CASE WHEN key.compared IS NULL THEN 'false'  -- there is one row
      ELSE format('(%s) > (%s)', key.compared, key.last) END,
    key.columns
  )
  FROM shown, key
$$;

-- The next rows of a table after a key, in the order of keys, each a line of JSON with its key: up to
-- p_rows, and no more once there are p_bytes, but one at least while there are any. A row is read only when
-- those before it left room for it. Its own transaction.
CREATE OR REPLACE FUNCTION tenant.read_own_rows(
  p_user uuid, p_table text, p_withheld text[], p_json text[], p_after text[], p_rows int, p_bytes int
) RETURNS TABLE (line bytea, key text[])
LANGUAGE plpgsql SET timezone = 'UTC' AS $$
DECLARE
  piece refcursor;
  size bigint := 0;
BEGIN
  PERFORM tenant.begin_taking(p_user);
  OPEN piece FOR EXECUTE tenant.reading_of(p_table, p_withheld, p_json) USING p_after, p_rows;
  LOOP
    FETCH piece INTO line, key;
    EXIT WHEN NOT FOUND;
    RETURN NEXT;
    size := size + octet_length(line);
    EXIT WHEN size >= p_bytes;
  END LOOP;
  CLOSE piece;
END $$;

-- How many rows each table has of a person, and how many bytes they take as they are stored; of no table
-- are more than p_most looked at, and `is_whole` says whether that was all. Its own transaction.
CREATE OR REPLACE FUNCTION tenant.measure_own_rows(p_user uuid, p_most int)
RETURNS TABLE (name text, rows bigint, bytes bigint, is_whole boolean)
LANGUAGE plpgsql AS $$
DECLARE
  sizes text;
BEGIN
  PERFORM tenant.begin_taking(p_user);
  FOR name IN SELECT t.name FROM tenant.own_tables() t LOOP
    SELECT string_agg(format('coalesce(pg_column_size(o.%I), 0)', a.attname), ' + ') INTO sizes
    FROM pg_attribute a
    WHERE a.attrelid = format('public.%I', name)::regclass AND a.attnum > 0 AND NOT a.attisdropped;
    EXECUTE format(
      'SELECT least(count(*), $1), coalesce(sum(%s), 0), count(*) <= $1'
      ' FROM (SELECT * FROM public.%I LIMIT $1 + 1) o', sizes, name
    ) INTO rows, bytes, is_whole USING p_most;
    RETURN NEXT;
  END LOOP;
END $$;
