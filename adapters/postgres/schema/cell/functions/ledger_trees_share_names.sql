-- Whether two trees of the batch share a UUID or a name, as they are listed or as they are stored.
create or replace function ledger_trees_share_names(batch ledger_tree_batch) returns boolean
  language plpgsql stable
as $$
declare
  l_tree constant int[] := batch.provider_tree;
  l_uuid constant uuid[] := batch.provider_uuid;
  l_name constant text[] := batch.provider_name;
  t_root constant int[] := batch.tree_root;
begin
  return exists (
    select from (
      select l.uuid, l.tree from unnest(l_uuid, l_tree) as l (uuid, tree)
      union
      select p.uuid, l_tree[t.root]
      from unnest(t_root) as t (root)
      join resource_providers r on r.uuid = l_uuid[t.root] join resource_providers p on p.root_id = r.id
    ) u group by u.uuid having count(distinct u.tree) > 1
  ) or exists (
    select from (
      select l.name, l.tree from unnest(l_name, l_tree) as l (name, tree)
      union
      select p.name, l_tree[t.root]
      from unnest(t_root) as t (root)
      join resource_providers r on r.uuid = l_uuid[t.root] join resource_providers p on p.root_id = r.id
    ) u group by u.name having count(distinct u.tree) > 1
  );
end
$$;
