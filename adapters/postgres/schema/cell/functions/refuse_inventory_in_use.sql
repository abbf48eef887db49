-- Replaces a foreign key from allocations, at no cost to claims: an inventory that is in use cannot be removed.
create or replace function refuse_inventory_in_use() returns trigger language plpgsql as $$
begin
  raise exception 'inventory % of provider % is in use', old.class_id, old.provider_id
    using errcode = 'foreign_key_violation', constraint = 'allocations_inventory_fkey';
end
$$;
