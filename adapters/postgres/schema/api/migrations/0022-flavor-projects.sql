-- The projects that may use a flavor that is not public.
create table flavor_projects (
  flavor_id text not null references flavors (id) on delete cascade,
  project_id text not null,
  primary key (flavor_id, project_id)
);
create index on flavor_projects (project_id);
