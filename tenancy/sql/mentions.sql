-- What a person points at in a message: found by its title, and read by its id.

-- A text as titles are compared: without accents, in lower case.
CREATE OR REPLACE FUNCTION tenant.folded(p_text text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT lower(regexp_replace(normalize(p_text, NFKD), U&'[\0300-\036F]', '', 'g'))
$$;

-- A person's conversations whose titles have every word of a query somewhere in them. Those that
-- begin with the query come first, then those that have it whole; the newest of each before others.
-- One of them may be left out.
CREATE OR REPLACE FUNCTION tenant.find_titles(
  p_user uuid, p_query text, p_without uuid, p_limit int
)
RETURNS TABLE (thread_id uuid, title text)
LANGUAGE plpgsql AS $$
DECLARE
  query text := tenant.folded(btrim(p_query));
  words text[] := ARRAY(SELECT DISTINCT word FROM regexp_split_to_table(query, '\s+') AS word);
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN QUERY
    SELECT t.thread_id, t.title
    FROM public.threads t
    -- OFFSET: folded once, and not again for each word.
    CROSS JOIN LATERAL (SELECT tenant.folded(t.title) AS title OFFSET 0) AS f
    WHERE t.user_id = p_user AND t.deleted_at IS NULL
      AND t.thread_id IS DISTINCT FROM p_without
      AND NOT EXISTS (SELECT FROM unnest(words) AS w (word) WHERE strpos(f.title, w.word) = 0)
      AND t.title IS NOT NULL
    ORDER BY starts_with(f.title, query) DESC, strpos(f.title, query) > 0 DESC,
             t.updated_at DESC, t.thread_id
    LIMIT p_limit;
END $$;

-- Those of some conversations and memories that are there, and so many characters of what each is
-- called or says.
CREATE OR REPLACE FUNCTION tenant.find_mentioned(
  p_user uuid, p_threads uuid[], p_memories uuid[], p_characters int
) RETURNS TABLE (kind text, id uuid, said text)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN QUERY
    SELECT 'thread', t.thread_id, left(t.title, p_characters)
    FROM public.threads t
    WHERE t.user_id = p_user AND t.thread_id = ANY (p_threads) AND t.deleted_at IS NULL
    UNION ALL
    SELECT 'memory', m.memory_id, left(m.content, p_characters)
    FROM tenant.memories_of(p_user, p_memories::text[]) m;
END $$;
