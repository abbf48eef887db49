-- Schedulers forget old calls for several servers.
create index on reservations (created_at);
