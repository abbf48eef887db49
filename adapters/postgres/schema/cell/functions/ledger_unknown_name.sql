-- The first of the items first_item..last_item of a batch whose inventory does not exist, as a reason. Null when all exist.
create or replace function ledger_unknown_name(
  first_item int, last_item int, item_inventory int[], place_named int[], inventory_provider int[], inventory_class int[],
  providers uuid[], classes text[], provider_ids int[]
)
  returns jsonb
  language plpgsql immutable
as $$
declare
  inventory int;
  provider int;
begin
  for x in first_item..last_item loop
    inventory := item_inventory[x];
    provider := inventory_provider[inventory];
    if provider_ids[provider] is null then
      return jsonb_build_object('kind', 'unknown-provider', 'provider', providers[provider]);
    elsif place_named[inventory] = 0 then
      return jsonb_build_object('kind', 'unknown-inventory', 'provider', providers[provider],
        'resourceClass', classes[inventory_class[inventory]]);
    end if;
  end loop;
  return null;
end
$$;
