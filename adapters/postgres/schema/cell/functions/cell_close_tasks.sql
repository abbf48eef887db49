-- Closes these operations, so that cell_begin refuses them from now on. Returns for each whether it had begun before, and then it is not closed. The
-- rows of servers are locked first, as in cell_begin, so that each of the two sees what the other one has written.
create or replace function cell_close_tasks(task_ids uuid[], server_uuids uuid[]) returns table (at int, begun boolean)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
begin
  perform from servers s where s.uuid = any (server_uuids) order by s.uuid for no key update;
  insert into closed_tasks (id, server_uuid)
  select w.id, w.server from unnest(task_ids, server_uuids) as w (id, server)
  where not exists (select from tasks t where t.id = w.id) order by w.id
  on conflict (id) do nothing;
  return query
    select w.at::int, exists (select from tasks t where t.id = w.id)
    from unnest(task_ids) with ordinality as w (id, at);
end
$$;
