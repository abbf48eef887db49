-- The list with this task, without the oldest ones where it has more than 100.
create or replace function cell_add_task(list uuid[], task uuid) returns uuid[]
  language sql
as $$
  select case when task = any (list) then list else list[greatest(1, cardinality(list) - 98):] || task end;
$$;
