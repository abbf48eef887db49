-- Locks the servers and tasks of these claims, and returns the positions of the claims that may still write. Their task has the given
-- epoch, and either it has not ended (`repeated` false), or has ended with `outcome` by an earlier identical write (`repeated` true).
create or replace function cell_claims(task_ids uuid[], server_uuids uuid[], epochs int[], outcome text)
  returns table (at int, repeated boolean)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
as $$
begin
  perform from servers s where s.uuid = any (server_uuids) order by s.uuid for no key update;
  return query
    select l.at::int, l.ended_at is not null from (
      select w.at, w.epoch as claimed, t.epoch, t.ended_at, t.outcome
      from unnest(task_ids, server_uuids, epochs) with ordinality as w (id, server_uuid, epoch, at)
      join tasks t on t.id = w.id and t.server_uuid = w.server_uuid
      order by t.id for no key update of t
    ) l
    where l.epoch = l.claimed and (l.ended_at is null or l.outcome = cell_claims.outcome);
end
$$;
