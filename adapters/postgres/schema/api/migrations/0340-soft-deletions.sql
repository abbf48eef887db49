-- Servers that were deleted softly, or are being restored. While a server is deleted softly, its request is `gone` (neither listed nor counted) and still
-- `dispatched`. A row is settled when the server's cell has carried out its aim.
create table soft_deletions (
  server_uuid uuid primary key,
  aim text not null check (aim in ('deleted', 'restored', 'reclaimed')),
  version integer not null default 1,
  asked_by jsonb not null,
  deleted_at timestamptz not null,
  tries integer not null default 0,
  settled boolean not null default false,
  looked_at timestamptz not null
);
create index soft_deletions_open on soft_deletions (looked_at) where not settled;
create index soft_deletions_deleted_at on soft_deletions (deleted_at) where aim = 'deleted';
