-- Which server has a port, so that no other gets it. The server's cell says what it has of it there.
alter table ports
  add column server_uuid uuid,
  add column bound_at timestamptz;
