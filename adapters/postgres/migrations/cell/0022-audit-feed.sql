-- What an auditor that watches follows (berth audit --watch): every claim and release, with what it did to `used`. Apart from the
-- views' publication: a view needs no allocations, and is not sent them. Whoever does not watch pays nothing for it.
create publication berth_audit for table
  inventories (provider_id, class_id, total, reserved, allocation_ratio, used),
  allocations (consumer_uuid, provider_id, class_id, amount);
