-- Notes that a server was deleted or restored by a process of an earlier version, which counts no resource classes.
create or replace function note_class_recount() returns trigger language plpgsql
  set search_path from current
as $$
begin
  insert into class_recounts (project_id) values (new.project_id);
  return null;
end
$$;
