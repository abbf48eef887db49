-- concurrently: writers go on
-- requires: message_late_field
-- Lists by the name of the key pair, which is field 24 of a spec. Servers without one have no entries.
drop index concurrently if exists servers_key;
create index concurrently servers_key on servers (message_late_field(spec, 24), created_at desc, uuid)
  where deleted_at is null and message_late_field(spec, 24) is not null;
