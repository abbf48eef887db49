-- The row of a deleted image stays, so that its id, under which hosts may still have its file, names no other image and is known to be deleted.
-- Lists never walk deleted rows.
alter table images add column deleted_at_ms bigint;
drop index images_created_at_ms_id_idx;
create index images_listed on images (created_at_ms desc, id) where deleted_at_ms is null;
create index images_owner on images (owner) where deleted_at_ms is null;
drop index images_upload;
create index images_upload on images (id) where upload is not null;
