-- What users have changed of a server since it was accepted, as `UserChanges` of core/tasks/user-changes.ts; null for most servers. It is
-- written seldom, and no change of a request's state touches it: requests still go through their states by heap-only updates.
alter table requests add column changes jsonb;
-- Servers are found by their tags, and those that are locked, without a look at the others. Requests without tags are not in the indexes, so
-- they cost nothing.
create index requests_tags on requests using gin ((changes -> 'tags')) where changes ? 'tags';
create index requests_locked on requests (created_at desc, server_uuid) where changes ->> 'lock' is not null;
