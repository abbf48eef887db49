-- What ledger views follow. Column lists leave out what no view shows (timestamps most of all: the dearest to send and decode).
-- Every table's replica identity is its primary key, the default: a deleted row arrives as its key.
create publication berth_ledger for table
  resource_classes (id, name),
  traits (id, name),
  resource_providers (id, uuid, name, parent_id, root_id, generation),
  inventories (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, used),
  provider_traits (provider_id, trait_id),
  provider_aggregates (provider_id, aggregate),
  hosts (name, root_provider, up, disabled);
