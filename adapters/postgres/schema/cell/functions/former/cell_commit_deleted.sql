-- requires: cell_become_deleted
-- called by: services of the versions that begin no task before they have taken it
-- cell_become_deleted, for tasks that their conductors have taken.
create or replace function cell_commit_deleted(task_ids uuid[], server_uuids uuid[], epochs int[])
  returns setof int
  language sql
as $$
  select cell_become_deleted(task_ids, server_uuids, epochs, null);
$$;
