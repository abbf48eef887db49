-- The incarnation of this database with which all guests of a host were last compared. It is kept here, because the agent's own word about it may be
-- a lie. A table of its own, because the views of schedulers follow the hosts.
create table compared_hosts (
  host text primary key,
  incarnation text not null,
  compared_at timestamptz not null default now()
);

-- Whether the guest may really be one that the database has forgotten, so that its server gets no second guest.
alter table quarantined_guests add column holds boolean not null default true;
