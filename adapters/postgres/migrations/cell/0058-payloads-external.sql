-- What `0002-cell` says when it makes the table, for the servers that do not let it (before PostgreSQL 16): see `forServer` in migrate.ts.
do $$
begin
  if exists (
    select from pg_attribute where attrelid = 'tasks'::regclass and attname = 'payload' and attstorage <> 'e'
  ) then
    alter table tasks alter column payload set storage external;
  end if;
end
$$;
