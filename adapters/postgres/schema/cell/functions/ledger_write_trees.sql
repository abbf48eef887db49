-- requires: ledger_insert_providers, ledger_write_tree_aggregates, ledger_write_tree_inventories, ledger_write_tree_traits
-- Writes the differences of the trees that are `going`, whose providers and inventories are locked. Returns the changed trees.
create or replace function ledger_write_trees(batch ledger_tree_batch, going boolean[]) returns int[]
  language plpgsql
as $$
declare
  l_tree constant int[] := batch.provider_tree;
  l_uuid constant uuid[] := batch.provider_uuid;
  l_name constant text[] := batch.provider_name;
  l_parent constant int[] := batch.provider_parent;
  t_root constant int[] := batch.tree_root;
  -- For each listed provider its id (0 if its tree is not written), and whether it is new.
  id_sequence constant regclass := pg_get_serial_sequence('resource_providers', 'id');
  ids int[];
  is_new boolean[];
  class_ids int[];
  trait_ids int[];
  -- Ids of providers that the lists leave out.
  left_out int[];
  left_out_trees int[];
  -- Ids of the providers that differ.
  touched int[];
begin
  -- Creates names, and ids for new providers.
  insert into resource_classes (name)
  select w.name from unnest(batch.classes) as w (name)
  where not exists (select from resource_classes r where r.name = w.name) order by w.name
  on conflict do nothing;
  insert into traits (name)
  select w.name from unnest(batch.traits) as w (name)
  where not exists (select from traits r where r.name = w.name) order by w.name
  on conflict do nothing;
  class_ids := array(
    select r.id from unnest(batch.classes) with ordinality as w (name, at)
    join resource_classes r on r.name = w.name order by w.at
  );
  trait_ids := array(
    select r.id from unnest(batch.traits) with ordinality as w (name, at)
    join traits r on r.name = w.name order by w.at
  );
  select array_agg(l.id order by l.at), array_agg(l.is_new order by l.at) into ids, is_new
  from (
    select l.at, going[l.tree] and p.id is null as is_new,
      case
        when not going[l.tree] then 0
        when p.id is null then nextval(id_sequence)::int
        else p.id
      end as id
    from unnest(l_tree, l_uuid) with ordinality as l (tree, uuid, at)
    left join resource_providers p on p.uuid = l.uuid
  ) l;
  select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(t.at::int), '{}') into left_out, left_out_trees
  from unnest(t_root) with ordinality as t (root, at)
  join resource_providers p on p.root_id = ids[t.root]
  where p.uuid <> all (l_uuid);

  -- Old names are replaced and left-out providers removed first, so that members of a tree may swap names.
  update resource_providers p set name = 'replaced ' || p.uuid
  from (
    select w.id from unnest(left_out) as w (id)
    union all
    select l.id from unnest(ids, l_name) as l (id, name) join resource_providers o on o.id = l.id where o.name <> l.name
  ) w
  where p.id = w.id;
  perform ledger_insert_providers(batch, ids, is_new);
  with written as (
    update resource_providers p set name = l.name, parent_id = ids[l.parent]
    from unnest(ids, l_name, l_parent) as l (id, name, parent)
    where p.id = l.id and (p.name <> l.name or p.parent_id is distinct from ids[l.parent])
    returning p.id
  )
  select coalesce(array_agg(written.id), '{}') into touched from written;
  touched := touched || ledger_write_tree_inventories(batch, ids, left_out, class_ids)
    || ledger_write_tree_traits(batch, ids, left_out, trait_ids)
    || ledger_write_tree_aggregates(batch, ids, left_out);

  delete from resource_providers p where p.id in (select w.id from unnest(left_out) as w (id));
  update resource_providers p set generation = p.generation + 1, updated_at = now()
  from (select distinct l.id from unnest(ids, is_new) as l (id, is_new) where l.id > 0 and not l.is_new) l
  where p.id = l.id and p.id in (select w.id from unnest(touched) as w (id));
  return array(
    select l.tree from unnest(l_tree, ids, is_new) as l (tree, id, is_new)
    where l.id > 0 and (l.is_new or l.id in (select w.id from unnest(touched) as w (id)))
    union
    select w.tree from unnest(left_out_trees) as w (tree)
  );
end
$$;
