-- concurrently: writers go on
-- requires: message_field
-- Lists by reservation id, which the api makes of the last ten digits of the id of the request, field 9 of a spec (`req-` and a UUID). Few servers have
-- the same one, so the index need not have them in the order of the list.
drop index concurrently if exists servers_reservation;
create index concurrently servers_reservation on servers (substring(message_field(spec, 9) from 31)) where deleted_at is null;
