-- requires: cell_first_taking, cell_note
-- Ends these tasks with `outcome`, each under its epoch. Raises BT002 if one has already ended or belongs to another conductor. The caller,
-- who has locked their servers, then undoes its writes. A task that this conductor has carried out without taking it names it now.
create or replace function cell_finish_tasks(
  task_ids uuid[], server_uuids uuid[], epochs int[], task_outcome text, conductor uuid
)
  returns void
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  written int;
  taker constant text := conductor::text || '/' || coalesce((select c.name from conductors c where c.id = conductor), '');
begin
  update tasks t set ended_at = now(), outcome = task_outcome,
    takings = case when t.owner is not null or taker is null then t.takings
      when cardinality(t.takings) = 0 then cell_first_taking(t.created_at, taker) else cell_note(t.takings, taker, 20) end
  from (
    select u.* from unnest(task_ids, server_uuids, epochs) as u (id, server_uuid, epoch) order by u.id
  ) w
  where t.id = w.id and t.server_uuid = w.server_uuid and t.epoch = w.epoch and t.ended_at is null;
  get diagnostics written = row_count;
  if written < cardinality(task_ids) then
    raise exception using errcode = 'BT002';
  end if;
end
$$;
