-- When the server of a shelved server's image was asked to be unshelved: once it is, its users see the image no longer.
alter table images add column unshelve_asked_at_ms bigint;
create index images_unshelve_asked on images (id) where unshelve_asked_at_ms is not null and deleted_at_ms is null;
