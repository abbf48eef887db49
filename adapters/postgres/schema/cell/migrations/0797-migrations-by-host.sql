-- concurrently: writers go on
-- Lists of the migrations from and to a host, in their order, and of those under way.
drop index concurrently if exists migrations_listed;
create index concurrently migrations_listed on migrations (created_at desc, uuid);
drop index concurrently if exists migrations_from_host;
create index concurrently migrations_from_host on migrations (source_host, created_at desc, uuid);
drop index concurrently if exists migrations_to_host;
create index concurrently migrations_to_host on migrations (dest_host, created_at desc, uuid);
drop index concurrently if exists migrations_in_flight;
create index concurrently migrations_in_flight on migrations (created_at desc, uuid) where not ended;
drop index concurrently if exists migrations_created_at_idx;
