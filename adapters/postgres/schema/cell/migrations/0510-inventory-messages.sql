-- Every boot and every delete updates the inventories of its host, and a batch of them a hundred rows. Replication sends each row with a system
-- call of its own, which costs the database more than everything else that it does for a ledger view. So the updates of a statement are sent as one
-- message instead. Services of earlier versions follow `berth_ledger` and still get the rows.
--
-- requires: announce_inventories

-- The ledger without the inventories, and the inventories without their updates. The columns are those of `berth_ledger`.
create publication berth_ledger_rows for table
  resource_classes (id, name),
  traits (id, name),
  resource_providers (id, uuid, name, parent_id, root_id, generation),
  provider_traits (provider_id, trait_id),
  provider_aggregates (provider_id, aggregate),
  hosts (name, root_provider, up, disabled, hypervisor);
create publication berth_inventory_rows for table
  inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, used)
  with (publish = 'insert, delete, truncate');

-- This is the last statement, because from here on claims wait for this transaction, which then waits for nothing itself.
create trigger announce_updated after update on inventories
  referencing new table as new_rows for each statement execute function announce_inventories();
