-- The homes of servers and their moves. Conductors ask for them for every guest that an agent reports. CLOSED servers are left out. This is
-- a function because of its settings: as a plain statement that was planned while the tables were small, it read all servers and all open
-- tasks until they were analyzed. Tasks and migrations are looked up for each row: `exists` might be answered from a hash of all open
-- tasks, and a plain join by scanning all migrations for each server.
create or replace function cell_homes(server_uuids uuid[])
  returns table (
    uuid uuid, status text, host text, attempt_id text, revision int, busy boolean, migration uuid, kind text,
    source_host text, source_attempt_id text, dest_host text, dest_attempt_id text, runs boolean
  )
  language plpgsql stable
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
begin
  return query
    select s.uuid, s.status, s.host, s.attempt_id, s.revision,
      (select true from tasks t where t.server_uuid = s.uuid and t.outcome is null and t.kind <> 'build' limit 1) is not null,
      m.uuid, m.kind, m.source_host, m.source_attempt_id, m.dest_host, m.dest_attempt_id, m.runs
    from servers s
    left join lateral (select r.* from migrations r where r.server_uuid = s.uuid and not r.ended limit 1) m on true
    where s.uuid = any (server_uuids) and s.status <> 'CLOSED';
end
$$;
