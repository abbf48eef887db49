-- concurrently: conductors go on writing tasks
-- The audit reads the specs of servers whose volumes may be in doubt, which only a replacement that has failed leaves.
drop index concurrently if exists tasks_failed_replacements;
create index concurrently tasks_failed_replacements on tasks (server_uuid)
  where operation = 'swap-volume' and outcome = 'error';
