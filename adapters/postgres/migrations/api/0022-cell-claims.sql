-- Who is about to write a name of the Placement API (a provider's uuid or name, a consumer) in which cell. Such names are unique over all cells, and
-- no constraint reaches over databases: a process first has a row here, then looks into the other cells, then writes. A row counts for a while
-- only: longer than the write after it can take. So one that its process left behind without writing keeps nobody out for long, and old rows are
-- removed. See core/placement/cell-arbiter.ts.
create table cell_claims (
  kind text not null check (kind in ('provider-uuid', 'provider-name', 'consumer')),
  key text not null,
  cell text not null,
  -- Another one with each claim: who gives a row back must not take it from somebody who has claimed it since.
  token uuid not null default gen_random_uuid(),
  claimed_at timestamptz not null default now(),
  primary key (kind, key)
);
create index on cell_claims (claimed_at);
