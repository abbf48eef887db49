-- Records that resources are held on a host for a guest of a server that a delete or an offload could not destroy: a row of `migrations` of
-- kind `leftover`, which is not a move. No task has its UUID, so lists of moves with their tasks leave it out.
create or replace function cell_leave_behind(leftover uuid, of_server uuid, on_host text) returns void
  language sql
as $$
  insert into migrations (uuid, server_uuid, kind, status, source_host, dest_host, dest_attempt_id, ended, holds_source, runs)
  values (leftover, of_server, 'leftover', 'done', on_host, on_host, '', true, true, false)
  on conflict (uuid) do nothing;
$$;
