-- requires: cell_claims, cell_finish_tasks, cell_hold
-- Sets servers ACTIVE whose attempt is still the server's home, and of which no other guest is in quarantine: it may run. Returns the committed
-- positions.
create or replace function cell_become_active(
  task_ids uuid[], server_uuids uuid[], epochs int[], selections int[], attempt_ids text[], conductor uuid
)
  returns setof int
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  written int;
  fresh int[];
  committed int[];
  quarantined constant uuid[] := array(
    select q.server_uuid::uuid from quarantined_guests q
    where q.server_uuid = any (server_uuids::text[]) and q.holds and not q.condemned and q.attempt_id <> all (attempt_ids)
  );
begin
  begin
    if cardinality(quarantined) > 0 then
      raise sqlstate 'BT002';
    end if;
    update servers s set status = 'ACTIVE', task_state = null, launched_at = now(), updated_at = now()
    from (select u.* from unnest(server_uuids, attempt_ids) as u (uuid, attempt_id) order by u.uuid) w
    where s.uuid = w.uuid and s.attempt_id = w.attempt_id;
    get diagnostics written = row_count;
    if written < cardinality(task_ids) then
      raise exception using errcode = 'BT002';
    end if;
    perform cell_finish_tasks(task_ids, server_uuids, epochs, 'success', conductor);
    update attempts a set ended_at = now(), result = 'success', reason = null
    from unnest(task_ids, selections) as w (task_id, selection) where a.task_id = w.task_id and a.selection = w.selection;
    return query select generate_series(1, cardinality(task_ids));
    return;
  exception when sqlstate 'BT002' then
    null;
  end;

  select coalesce(array_agg(c.at) filter (where not c.repeated), '{}'), coalesce(array_agg(c.at), '{}') into fresh, committed
  from cell_claims(task_ids, server_uuids, epochs, 'success') as c;
  -- Only a statement that begins when the rows are locked sees where a hop under the same epoch has left the servers.
  select coalesce(array_agg(c.at) filter (where c.at = any (fresh)), '{}'), array_agg(c.at) into fresh, committed
  from unnest(committed) as c (at)
  join servers s on s.uuid = server_uuids[c.at]
  where s.attempt_id = attempt_ids[c.at]
    and case when c.at = any (fresh) then s.uuid <> all (quarantined) else s.status = 'ACTIVE' end;

  if conductor is not null then
    perform cell_hold(conductor, array(select task_ids[f.at] from unnest(fresh) as f (at)));
  end if;
  update tasks t set ended_at = now(), outcome = 'success' from unnest(fresh) as f (at) where t.id = task_ids[f.at];
  update servers s set status = 'ACTIVE', task_state = null, launched_at = now(), updated_at = now()
  from unnest(fresh) as f (at) where s.uuid = server_uuids[f.at];
  update attempts a set ended_at = now(), result = 'success', reason = null
  from unnest(fresh) as f (at) where a.task_id = task_ids[f.at] and a.selection = selections[f.at];
  return query select c.at from unnest(committed) as c (at);
end
$$;
