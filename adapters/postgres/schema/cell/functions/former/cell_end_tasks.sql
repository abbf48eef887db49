-- requires: cell_finish_tasks
-- called by: services of the versions that begin no task before they have taken it
-- cell_finish_tasks, for tasks that their conductors have taken.
create or replace function cell_end_tasks(task_ids uuid[], server_uuids uuid[], epochs int[], task_outcome text) returns void
  language sql
as $$
  select cell_finish_tasks(task_ids, server_uuids, epochs, task_outcome, null);
$$;
