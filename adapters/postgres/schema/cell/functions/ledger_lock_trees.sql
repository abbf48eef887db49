-- Locks these trees as they are now, in the order of all locks: reports of trees, then providers, then inventories. Nobody else can add a
-- provider to them, nor change what they offer, until the transaction ends.
create or replace function ledger_lock_trees(roots uuid[]) returns void
  language plpgsql
as $$
declare
  members int[];
begin
  perform pg_advisory_xact_lock(7236418052);
  members := array(
    select p.id from resource_providers r join resource_providers p on p.root_id = r.id
    where r.uuid = any (roots) order by p.id for update of p
  );
  perform 1 from inventories v where v.provider_id = any (members) order by v.provider_id, v.class_id for update;
end
$$;
