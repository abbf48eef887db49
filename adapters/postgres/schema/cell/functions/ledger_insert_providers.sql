-- Inserts the new providers of the batch, whose ids are chosen already. One plan serves all its calls and, above all, all checks of foreign keys: these
-- use the planner's setting of the statement that they belong to, and the callers plan anew each time, which would cost several times the row.
create or replace function ledger_insert_providers(batch ledger_tree_batch, ids int[], is_new boolean[]) returns void
  language plpgsql
  set plan_cache_mode = force_generic_plan
as $$
declare
  t_root constant int[] := batch.tree_root;
begin
  insert into resource_providers (id, uuid, name, parent_id, root_id) overriding system value
  select l.id, l.uuid, l.name, ids[l.parent], ids[t_root[l.tree]]
  from unnest(ids, batch.provider_uuid, batch.provider_name, batch.provider_parent, batch.provider_tree, is_new)
    as l (id, uuid, name, parent, tree, is_new)
  where l.is_new;
end
$$;
