-- A server may be SUSPENDED: its guest's memory is saved on its host, and it does not run.
alter table servers
  drop constraint servers_status_check,
  add constraint servers_status_check check (status in (
    'BUILD', 'ACTIVE', 'ERROR', 'DELETED', 'CLOSED', 'SHUTOFF', 'PAUSED', 'SUSPENDED', 'VERIFY_RESIZE', 'SHELVED', 'SHELVED_OFFLOADED'
  ));
