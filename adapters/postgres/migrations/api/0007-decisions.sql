-- How schedulers decided, for whoever asks why: appended in batches, purged by age and number, read by server.
create table decisions (
  id bigint generated always as identity primary key,
  server_uuid uuid not null,
  request_id text not null,
  scheduler text not null,
  at timestamptz not null,
  decision jsonb not null
);
create index decisions_server on decisions (server_uuid, id desc);
create index decisions_at on decisions using brin (at);
