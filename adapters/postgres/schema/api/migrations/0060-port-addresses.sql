-- Ports of Berth's own network have an address, and those that were made for a server are removed with it.
alter table ports add column address inet, add column ends_with_server boolean not null default false;
create unique index ports_address on ports (network_id, address) where address is not null;
create index ports_server on ports (server_uuid) where server_uuid is not null;

-- Where the search for a network's next free address begins, as an offset from the first address that it gives out.
create table address_cursors (
  network_id text primary key,
  next bigint not null
);
