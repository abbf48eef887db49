-- requires: cell_host_seen, cell_without, cell_write_step, ledger_apply
-- Commits steps, each of a different task and server. A step whose position is not returned is fenced.
create or replace function cell_commit_steps(steps jsonb, task_ids uuid[], server_uuids uuid[], epochs int[], changes ledger_batch)
  returns table (at int, outcome text, detail jsonb, revision int)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  count constant int := cardinality(task_ids);
  verdicts text[] := array_fill(null::text, array[cardinality(task_ids)]);
  details jsonb[] := array_fill(null::jsonb, array[cardinality(task_ids)]);
  withheld int[] := '{}';
  w jsonb;
  found_task record;
  n int;
begin
  perform from servers s where s.uuid = any (server_uuids) order by s.uuid for no key update;
  perform from tasks t where t.id = any (task_ids) order by t.id for no key update;
  for n in 1..count loop
    w := steps -> (n - 1);
    select t.epoch, t.step, t.outcome, t.stage, t.selection into found_task from tasks t where t.id = task_ids[n] and t.server_uuid = server_uuids[n];
    if not found or found_task.epoch <> epochs[n] then
      verdicts[n] := 'fenced';
    elsif found_task.step = (w ->> 'step')::int + 1 and found_task.stage is not distinct from w ->> 'stage'
      and found_task.outcome is not distinct from w ->> 'outcome' and found_task.selection = (w ->> 'selection')::int then
      verdicts[n] := 'repeated';
    elsif found_task.outcome is not null or found_task.step <> (w ->> 'step')::int then
      verdicts[n] := 'fenced';
    elsif w ->> 'refused' is not null then
      verdicts[n] := 'refused';
      details[n] := jsonb_build_object('why', w ->> 'refused');
    elsif w ->> 'unseenHost' is not null
      and cell_host_seen(w ->> 'unseenHost', (w ->> 'unseenMs')::double precision) then
      verdicts[n] := 'host-seen';
    end if;
    if verdicts[n] is not null then
      withheld := withheld || n;
    end if;
  end loop;
  if cardinality(withheld) > 0 then
    changes := cell_without(changes, withheld);
  end if;
  select array_agg(coalesce(verdicts[a.change], a.kind) order by a.change),
    array_agg(coalesce(details[a.change], a.detail) order by a.change)
  into verdicts, details
  from ledger_apply(changes) as a;
  for n in 1..count loop
    continue when verdicts[n] = 'fenced';
    at := n;
    outcome := verdicts[n];
    detail := details[n];
    revision := case verdicts[n]
      when 'committed' then cell_write_step(steps -> (n - 1))
      when 'repeated' then (select s.revision from servers s where s.uuid = server_uuids[n])
    end;
    return next;
  end loop;
end
$$;
