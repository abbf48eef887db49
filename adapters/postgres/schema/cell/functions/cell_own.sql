-- requires: cell_note
-- Gives these tasks, which the caller has locked, to the conductor, and records in the tasks that it took them.
create or replace function cell_own(conductor uuid, task_ids uuid[])
  returns table (id uuid, payload bytea, epoch int, selection int, host text, attempt_id text)
  language sql
as $$
  update tasks t set owner = conductor, epoch = t.epoch + 1,
    takings = case when t.owner = conductor then t.takings else cell_note(
      t.takings, conductor::text || '/' || coalesce((select c.name from conductors c where c.id = conductor), ''), 20) end
  from servers s
  where t.id = any (task_ids) and s.uuid = t.server_uuid
  returning t.id, t.payload, t.epoch, t.selection, s.host, s.attempt_id;
$$;
