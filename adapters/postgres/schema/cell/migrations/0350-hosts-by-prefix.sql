-- Finds the hosts whose names begin with a given text, which the index of the primary key cannot do in every collation.
create index hosts_name_prefix_idx on hosts (name collate "C");
