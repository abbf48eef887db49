-- What a request counts for beside one instance: what its flavor had when it was accepted, or what a resize made of that. Servers that were
-- accepted before this migration count as instances only.
alter table requests
  add column cores int not null default 0,
  add column ram_mib int not null default 0;

-- What the living requests of a project count for, written by the statements that accept and cancel requests. The amount of a user in a
-- project is the sum over the shards: connections write to different shards, so that calls that need no decision do not wait for each other's
-- commits. A single shard may be negative.
create table quota_usages (
  project_id text not null,
  user_id text not null,
  shard int not null,
  instances int not null,
  cores int not null,
  ram_mib bigint not null,
  primary key (project_id, user_id, shard)
) with (fillfactor = 50);
insert into quota_usages (project_id, user_id, shard, instances, cores, ram_mib)
select project_id, user_id, 0, count(*), 0, 0 from requests where state not in ('cancelled', 'deleted') group by 1, 2;

-- Limits that operators set: of a project (user_id is empty), or of one user in it. -1 is no limit.
create table quotas (
  project_id text not null,
  user_id text not null default '',
  resource text not null,
  hard_limit int not null check (hard_limit >= -1),
  primary key (project_id, user_id, resource)
);

-- Limits by class. The class `default` replaces the defaults of the installation.
create table quota_classes (
  class text not null,
  resource text not null,
  hard_limit int not null check (hard_limit >= -1),
  primary key (class, resource)
);

-- Servers that count as the larger of two sizes, because a resize was asked for and nobody has yet seen it end in the server's cell.
create table charged_resizes (
  server_uuid uuid primary key,
  version bigint not null,
  looked_at timestamptz not null default now()
);
