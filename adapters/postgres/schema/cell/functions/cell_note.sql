-- The list with one more entry, with the present time, and without its oldest entries beyond `most`. The time is computed in floating
-- point, which is exact in milliseconds and takes half as long.
create or replace function cell_note(list text[], entry text, most int) returns text[]
  language sql
as $$
  select list[greatest(1, cardinality(list) - most + 2):]
    || (floor(date_part('epoch', clock_timestamp()) * 1000)::bigint::text || '/' || entry);
$$;
