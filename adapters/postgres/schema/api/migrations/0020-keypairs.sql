-- Public keys of users, by name. Servers get a copy of the key, so nothing refers to these rows.
create table keypairs (
  id int generated always as identity,
  user_id text not null,
  -- Lists are in the order of the bytes, whatever the locale of the database.
  name text collate "C" not null,
  type text not null check (type in ('ssh', 'x509')),
  public_key text not null,
  fingerprint text not null,
  created_at timestamptz not null,
  primary key (user_id, name)
);
