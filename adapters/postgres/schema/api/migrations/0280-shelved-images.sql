-- The server whose disk an image was made of when the server was shelved; the image ends with that server. Null for every other image.
alter table images add column shelved_server uuid;
create index images_of_shelved_servers on images (shelved_server) where shelved_server is not null and deleted_at_ms is null;
