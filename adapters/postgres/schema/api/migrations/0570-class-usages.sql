-- What a request counts for of each resource class, such as DISK_GB or PCPU: an object from class to amount. Null while nobody has limited resource
-- classes (Keystone's unified limits), and for requests that were accepted before; they are counted by the project's next decision.
alter table requests add column classes jsonb;

-- The sums of these over the living requests of a project, written by the same statements as `quota_usages`. The class `servers` is the number of the
-- requests that are counted here: while it differs from the project's instances, the project has to be counted anew.
create table quota_class_usages (
  project_id text not null,
  class text not null,
  shard int not null,
  amount bigint not null,
  primary key (project_id, class, shard)
) with (fillfactor = 50);
