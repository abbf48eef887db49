-- Volumes that are made together with a server. `making` is null once the server is known to have run with the volume, and for all other volumes. A row
-- that is `asked` has an id of its own, because Cinder, which was asked for a volume of the row's name, has not told the volume's id yet.
alter table volumes add column making text check (making in ('asked', 'made'));
