-- Before a server gets a guest, its guests in quarantine are looked for.
create index on quarantined_guests (server_uuid);
