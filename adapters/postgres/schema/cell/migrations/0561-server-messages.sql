-- Each boot and each delete write two rows of their server. Replication sends each row with a system call of its own, so the rows of a statement are
-- sent as one message, as those of inventories are. Services of earlier versions follow `berth_servers` and still get the rows.
--
-- requires: announce_servers, announce_spec

-- The servers without what the messages contain. The columns are those of `berth_servers`.
create publication berth_server_rows for table servers (uuid, status, task_state, host, spec) with (publish = 'delete, truncate');

create trigger announce_inserted after insert on servers
  referencing new table as new_rows for each statement execute function announce_servers();
create trigger announce_updated after update on servers
  referencing new table as new_rows for each statement execute function announce_servers();
create trigger announce_spec after update on servers
  for each row when (new.host is not null and (old.host is null or old.spec is distinct from new.spec))
  execute function announce_spec();
