-- concurrently: writers go on
-- requires: message_field
-- Lists by flavor (the id is field 1 of field 5 of a spec), image (field 6) and user. Deleted servers have no entries, and the other changes of a
-- server leave its entries as they are.
drop index concurrently if exists servers_flavor;
create index concurrently servers_flavor on servers (message_field(message_field(spec, 5), 1), created_at desc, uuid) where deleted_at is null;
drop index concurrently if exists servers_image;
create index concurrently servers_image on servers (message_field(spec, 6), created_at desc, uuid) where deleted_at is null;
drop index concurrently if exists servers_user;
create index concurrently servers_user on servers (user_id, created_at desc, uuid) where deleted_at is null;
