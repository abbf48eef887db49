-- A server may be in SOFT_DELETED: its guest is stopped, and it can still be restored.
alter table servers
  drop constraint servers_status_check,
  add constraint servers_status_check check (status in (
    'BUILD', 'ACTIVE', 'ERROR', 'DELETED', 'CLOSED', 'SHUTOFF', 'PAUSED', 'SUSPENDED', 'RESCUE', 'VERIFY_RESIZE', 'SHELVED', 'SHELVED_OFFLOADED',
    'SOFT_DELETED'
  ));
