-- A server may be in RESCUE: its guest runs from a rescue image, with the server's own disks beside it.
alter table servers
  drop constraint servers_status_check,
  add constraint servers_status_check check (status in (
    'BUILD', 'ACTIVE', 'ERROR', 'DELETED', 'CLOSED', 'SHUTOFF', 'PAUSED', 'SUSPENDED', 'RESCUE', 'VERIFY_RESIZE', 'SHELVED', 'SHELVED_OFFLOADED'
  ));
