-- What operators set while services run: one row a section, only what differs from the defaults.
create table settings (
  section text primary key,
  version bigint not null,
  "values" jsonb not null,
  updated_at timestamptz not null default now()
);
