-- Decides which calls may be accepted when no project may have more than `open_max` requests that wait to be placed. A call is accepted as
-- a whole or not at all, and the accepted calls count for those after them. Returns the refused calls, each with the number of requests
-- that are already waiting.
-- Until the transaction ends, no other one can decide about these projects, since each decision must count what the previous one has
-- committed. The locks are taken in the order of their keys, before the lock of any row.
-- Each request leaves dead entries in the index of `open_requests`. An index scan marks those that it meets, so that the next one passes over them. A
-- bitmap scan marks none: it would look up all entries since the last vacuum for each batch.
create or replace function calls_beyond_limit(uuids uuid[], projects text[], calls int[], open_max int)
returns table (refused_call int, open_already int) language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
as $$
declare
  counts jsonb;
  one record;
  is_open int;
begin
  perform pg_advisory_xact_lock(k.key)
  from (select distinct hashtextextended('open requests of ' || p.project, 0) as key from unnest(projects) as p (project) order by 1) k;
  select coalesce(jsonb_object_agg(c.project_id, c.n), '{}') into counts
  from (
    select o.project_id, count(*) as n from open_requests o
    where o.project_id = any (projects) and o.state = 'accepted' group by o.project_id
  ) c;
  for one in
    select w.call, min(w.project) as project, count(*)::int as n, array_agg(w.uuid) as call_uuids
    from unnest(uuids, projects, calls) as w (uuid, project, call) group by w.call order by w.call
  loop
    is_open := coalesce((counts ->> one.project)::int, 0);
    if is_open + one.n <= open_max then
      counts := counts || jsonb_build_object(one.project, is_open + one.n);
    elsif not exists (select from requests r where r.server_uuid = any (one.call_uuids)) then
      refused_call := one.call;
      open_already := is_open;
      return next;
    end if;
    -- Otherwise the call was accepted before, and its answer was lost. Its requests are already counted.
  end loop;
end
$$;
