-- The security groups of Berth's own network. Nothing enforces their rules.
create table security_groups (
  id uuid primary key,
  project_id text not null,
  name text not null,
  description text not null,
  created_at timestamptz not null default clock_timestamp()
);
create index security_groups_project on security_groups (project_id, name, id);
create table security_group_rules (
  id uuid primary key,
  group_id uuid not null references security_groups (id) on delete cascade,
  project_id text not null,
  direction text not null,
  ether_type text not null,
  protocol text,
  port_min integer,
  port_max integer,
  remote_prefix text,
  remote_group_id uuid references security_groups (id) on delete cascade,
  description text not null,
  created_at timestamptz not null default clock_timestamp()
);
create index security_group_rules_group on security_group_rules (group_id);
create index security_group_rules_remote on security_group_rules (remote_group_id) where remote_group_id is not null;
-- Two rules of a group never let exactly the same traffic pass.
create unique index security_group_rules_same on security_group_rules
  (group_id, direction, ether_type, protocol, port_min, port_max, remote_prefix, remote_group_id) nulls not distinct;
-- Null: the port is in its project's default group.
alter table ports add column security_groups uuid[];
create index ports_security_groups on ports using gin (security_groups) where security_groups is not null;
