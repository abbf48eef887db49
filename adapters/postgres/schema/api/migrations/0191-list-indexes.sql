-- concurrently: writers go on
-- A search also reads the names that have not been sorted into the index yet, so these are kept few.
drop index concurrently if exists requests_name;
create index concurrently requests_name on requests using gin (name gin_trgm_ops) with (gin_pending_list_limit = 256) where not gone;
-- Lists of changes look for requests by the time of their last change. From PostgreSQL 16 on, an index of this kind does not make updates dearer.
drop index concurrently if exists requests_updated_at;
create index concurrently requests_updated_at on requests using brin (updated_at) with (pages_per_range = 16, autosummarize = on);
