-- Notes that a resize was settled by a process of an earlier version, which counts no resource classes.
create or replace function note_unsettled_classes() returns trigger language plpgsql
  set search_path from current
as $$
begin
  insert into class_recounts (project_id, server_uuid)
  select r.project_id, r.server_uuid from requests r where r.server_uuid = old.server_uuid and r.state = 'dispatched' and r.classes is not null;
  return null;
end
$$;
