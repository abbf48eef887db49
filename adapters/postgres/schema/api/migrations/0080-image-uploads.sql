-- An image that is being made from a server's disk: its state, the server, and how many backups are kept. Null for a finished image.
alter table images add column upload jsonb;
create index images_upload on images (created_at_ms) where upload is not null;
