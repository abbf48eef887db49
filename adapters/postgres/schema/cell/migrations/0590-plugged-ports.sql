-- The ports that Neutron has connected at the destination of a live migration which is being prepared, or could not connect there. Neutron reports this to an
-- api, and shows it nowhere. The conductor that prepares the destination waits for the rows.
create table plugged_ports (
  attempt_id text not null,
  port_id text not null,
  migration_uuid uuid not null references migrations (uuid) on delete cascade,
  failed boolean not null,
  primary key (attempt_id, port_id)
);
create index plugged_ports_migration_uuid_idx on plugged_ports (migration_uuid);
