-- concurrently: writers go on
-- The usage of a project, whose servers it counts with those that were deleted.
drop index concurrently if exists servers_of_project;
create index concurrently servers_of_project on servers (project_id, uuid);
