-- requires: cell_become_active
-- called by: services of the versions that begin no task before they have taken it
-- cell_become_active, for tasks that their conductors have taken.
create or replace function cell_commit_active(
  task_ids uuid[], server_uuids uuid[], epochs int[], selections int[], attempt_ids text[]
)
  returns setof int
  language sql
as $$
  select cell_become_active(task_ids, server_uuids, epochs, selections, attempt_ids, null);
$$;
