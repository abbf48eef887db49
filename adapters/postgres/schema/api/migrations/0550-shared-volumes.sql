-- A volume of Cinder that several servers may have at a time has a row for each of its servers. Such a row has an id of its own, names the volume in
-- `volume_id`, and ends with the attachment. All other rows have the id of their volume.
-- The constraint keeps apis of earlier versions, which would take the row's id for the volume's, from releasing a volume that its server has.
alter table volumes add column volume_id uuid;
alter table volumes add constraint shared_volumes_are_attached check (volume_id is null or phase is not null);
create unique index volumes_shared on volumes (volume_id, server_uuid) where volume_id is not null;
create index volumes_unsettled_by_volume on volumes (coalesce(volume_id, id)) where phase in ('attaching', 'detaching');
