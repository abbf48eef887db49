-- A request or a move that cannot be placed yet is remembered here and not in the work queue: `retry_at` is when a scheduler's sweep takes it
-- again, `put_offs` is how often it was put off. So the queue holds one message of each at most, and what waits for one cell keeps no place in it.
--
-- `accepted_at` is by this database's clock, unlike `requests.created_at`, which an api writes: ages are told from it.
--
-- Services of the version before know nothing of these columns. They sweep by `updated_at`, which every hand-out still touches.
alter table open_requests
  add column accepted_at timestamptz not null default now(),
  add column retry_at timestamptz,
  add column put_offs int not null default 0;

alter table moves
  -- Where the server lives; null: an api of the version before accepted the move.
  add column cell text,
  add column retry_at timestamptz,
  add column put_offs int not null default 0,
  -- Since when its cell may have been asked to begin it: from then on only that cell knows whether it did.
  add column asked_at timestamptz;

-- Nobody noted for these whether their cells were asked.
update moves set asked_at = created_at where state = 'accepted';
