-- concurrently: writers go on
-- Lists by the host name, the description, the access addresses and the disk configuration: the servers of which a user has changed one of them or the
-- name …
drop index concurrently if exists requests_changed;
create index concurrently requests_changed on requests (created_at desc, server_uuid)
  where changes ?| array['accessIpV4', 'accessIpV6', 'description', 'hostname', 'manualDisk', 'name'];
-- … and those whose host name is not simply the name in lower case. The index of names finds the others.
drop index concurrently if exists requests_odd_names;
create index concurrently requests_odd_names on requests (created_at desc, server_uuid)
  where not gone and (substring(name for 63) ~ '[^A-Za-z0-9 _.-]' collate "C" or substring(name for 63) !~ '[A-Za-z0-9]' collate "C");
