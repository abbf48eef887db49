-- Planned as the other functions are: its plans came of the first calls, when the tables were small, and read all servers until they were
-- analyzed.
alter function cell_join_groups set plan_cache_mode = force_generic_plan;
alter function cell_join_groups set enable_seqscan = off;
alter function cell_join_groups set enable_hashjoin = off;
alter function cell_join_groups set enable_mergejoin = off;
