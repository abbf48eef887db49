-- The list with this task added, and without its oldest entries beyond 100.
create or replace function cell_add_task(list uuid[], task uuid) returns uuid[]
  language sql
as $$
  select case when task = any (list) then list else list[greatest(1, cardinality(list) - 98):] || task end;
$$;
