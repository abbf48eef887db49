-- The homes of the servers on these hosts, and their moves, in the order of their UUIDs. Conductors ask for them again and again. This is a
-- function because of its settings (see cell_homes). A scan by bitmaps would walk the index entries of all servers that have left these
-- hosts since the last vacuum, which is after a fifth of a large table has changed. An index scan meets each of them once, marks it as dead,
-- and the next one passes over it.
create or replace function cell_residents(hosts text[])
  returns table (
    uuid uuid, status text, host text, attempt_id text, revision int, busy boolean, migration uuid, kind text,
    source_host text, source_attempt_id text, dest_host text, dest_attempt_id text, runs boolean
  )
  language plpgsql stable
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
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
    where s.host = any (hosts)
    order by s.uuid;
end
$$;
