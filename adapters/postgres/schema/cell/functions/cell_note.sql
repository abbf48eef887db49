-- The list with one more entry, of now, and without its oldest ones where it has more than `most`. In floating point: its milliseconds are
-- exact, and it takes half of the time.
create or replace function cell_note(list text[], entry text, most int) returns text[]
  language sql
as $$
  select list[greatest(1, cardinality(list) - most + 2):]
    || (floor(date_part('epoch', clock_timestamp()) * 1000)::bigint::text || '/' || entry);
$$;
