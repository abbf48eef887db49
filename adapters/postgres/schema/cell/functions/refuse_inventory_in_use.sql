-- Does what a foreign key from allocations would do, at no cost to claims: nobody removes an inventory that is in use.
create or replace function refuse_inventory_in_use() returns trigger language plpgsql as $$
begin
  raise exception 'inventory % of provider % is in use', old.class_id, old.provider_id
    using errcode = 'foreign_key_violation', constraint = 'allocations_inventory_fkey';
end
$$;
