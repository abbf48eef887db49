-- concurrently: conductors go on writing tasks
-- Replacements of volumes of servers whose move waits for its confirmation leave volumes in doubt, too. The audit reads both kinds by this index.
drop index concurrently if exists tasks_failed_replacements;
create index concurrently tasks_failed_replacements on tasks (server_uuid)
  where operation in ('swap-volume', 'swap-volume-unconfirmed') and outcome = 'error';
