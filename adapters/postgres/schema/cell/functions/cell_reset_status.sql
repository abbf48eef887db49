-- Sets the status of servers at rest on an operator's request. A server that is set to ACTIVE is no longer uncertain. If it is in ERROR and its move still waits for its confirmation, it becomes
-- VERIFY_RESIZE instead of ACTIVE. No server occurs twice. `outcome`: reset, gone, nowhere, or busy with the running task, with the status in which a move waits for its confirmation, or with that
-- of a server whose move was broken off.
create or replace function cell_reset_status(server_uuids uuid[], statuses text[])
  returns table (at int, outcome text, running text)
  language plpgsql
  set enable_seqscan = off
as $$
declare
  found_server record;
  waits boolean;
  n int;
begin
  perform from servers s where s.uuid = any (server_uuids) order by s.uuid for no key update;
  for n in 1..cardinality(server_uuids) loop
    select s.status, s.host into found_server from servers s where s.uuid = server_uuids[n];
    at := n;
    waits := found_server.status = 'ERROR'
      and exists (select from migrations m where m.server_uuid = server_uuids[n] and not m.ended and m.status = 'finished');
    running := coalesce(
      (select coalesce(t.operation, t.kind) from tasks t where t.server_uuid = server_uuids[n] and t.outcome is null limit 1),
      (select found_server.status from migrations m where m.server_uuid = server_uuids[n] and not m.ended and not waits limit 1)
    );
    outcome := case
      when found_server.status is null or found_server.status in ('CLOSED', 'DELETED') then 'gone'
      when running is not null then 'busy'
      when found_server.host is null then 'nowhere'
      else 'reset' end;
    if outcome = 'reset' then
      update servers s
      set status = case when waits and statuses[n] = 'ACTIVE' then 'VERIFY_RESIZE' else statuses[n] end, revision = s.revision + 1, updated_at = now(),
        uncertain_since = case when statuses[n] = 'ACTIVE' then null else s.uncertain_since end
      where s.uuid = server_uuids[n];
    end if;
    return next;
  end loop;
end
$$;
