-- Servers that may have ports in Neutron. `open_since` is set while the ports may differ from the server's record; '-infinity' when the server is gone.
create table port_notes (
  server_uuid uuid primary key,
  kept_ports uuid[] not null,
  version integer not null default 1,
  open_since timestamptz
);
create index port_notes_open on port_notes (server_uuid) where open_since is not null;
