-- The takings of a task that a conductor has begun without taking it. It has had the task since it was stored, but for the time of a message.
create or replace function cell_first_taking(created_at timestamptz, taker text) returns text[]
  language sql
as $$
  select array[floor(date_part('epoch', created_at) * 1000)::bigint::text || '/' || taker];
$$;
