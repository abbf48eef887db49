-- Secret keys that all apis share. Whatever makes one reads it afterwards, because another process may have been faster.
create table shared_keys (
  name text primary key,
  key bytea not null check (octet_length(key) = 32),
  made_at timestamptz not null default now()
);
