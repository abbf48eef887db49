-- Apis of earlier versions, which may run beside newer ones, know nothing of `classes`: they delete and restore servers without changing `quota_class_usages`, and settle
-- resizes without changing what a server counts for. The database notes that, and the project's next decision counts it anew.
--
-- requires: note_class_recount, note_unsettled_classes

-- Projects whose `quota_class_usages` may be wrong, and servers of which `classes` may be. Rows are only added and removed, never changed, so that no writer waits for another one.
create table class_recounts (
  id bigint generated always as identity primary key,
  project_id text not null,
  -- The server whose amounts have to be read from its cell. Null when only the sums are wrong.
  server_uuid uuid
);
create index class_recounts_of_project on class_recounts (project_id);

-- True when a process that counts classes has taken the row's classes off the sums. A change of `gone` without a change of this one is that of another process.
alter table requests add column classes_aside boolean;

create trigger note_class_recount after update of gone on requests for each row
  when (old.gone <> new.gone and old.classes is not null and old.classes_aside is not distinct from new.classes_aside)
  execute function note_class_recount();

-- `classes`: the most of each class that was charged, for a server that is not counted by class yet. `settles_classes` is set by a process that counts classes before it
-- deletes the row.
alter table charged_resizes add column classes jsonb, add column settles_classes boolean;

create trigger note_unsettled_classes after delete on charged_resizes for each row
  when (old.settles_classes is null)
  execute function note_unsettled_classes();
