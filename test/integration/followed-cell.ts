import type pg from "pg";
import { LedgerFollower } from "../../adapters/postgres/follower/ledger-follower.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import type { Provider } from "../../core/ledger/model.ts";
import { systemClock } from "../../runtime/clock.ts";

export interface Followed {
  readonly view: LedgerView;
  readonly follower: LedgerFollower;
  /** Why sessions ended, in order. */
  readonly lost: string[];
  /** The transactions that held up a load, in order. */
  readonly waited: string[];
}

/** A follower of the database with its own view. The caller closes the follower. */
export function follow(databaseUrl: string): Followed {
  const view = new LedgerView();
  const lost: string[] = [];
  const waited: string[] = [];
  const events = {
    loaded: () => {},
    lost: (_cell: string, error: Error) => void lost.push(error.message),
    waiting: (_cell: string, holders: readonly string[]) => void waited.push(...holders),
  };
  const follower = new LedgerFollower({ cell: "test", databaseUrl, view, clock: systemClock, events });
  follower.start();
  return { view, follower, lost, waited };
}

/** The view's providers by UUID, in the form of a ledger's dump. */
export function shownProviders(view: LedgerView): readonly Provider[] {
  const { roots, rootCount } = view.slots;
  const uuids = [...roots.subarray(0, rootCount)].flatMap((slot) => view.tree(view.slots.uuid(slot)));
  return uuids.sort().map((uuid) => view.provider(uuid)!);
}

/** The view's content, in a form that compares with `storedContent`. */
export function shownContent(view: LedgerView) {
  const providers = shownProviders(view).map(plain);
  const hosts = [...view.hosts.all()].map(({ name, provider, up, disabled }) => ({ name, provider, up, disabled }));
  return { providers, hosts: sortBy(hosts, (host) => host.name) };
}

/** The content of the tables, read by separate queries. */
export async function storedContent(client: pg.Client) {
  const { rows: providers } = await client.query<ReturnType<typeof plain>>(`
    select p.uuid, p.name, parent.uuid as parent, root.uuid as root, p.generation,
      coalesce((select jsonb_object_agg(c.name, jsonb_build_object(
          'total', i.total, 'reserved', i.reserved, 'minUnit', i.min_unit, 'maxUnit', i.max_unit,
          'stepSize', i.step_size, 'allocationRatio', i.allocation_ratio, 'used', i.used))
        from inventories i join resource_classes c on c.id = i.class_id where i.provider_id = p.id), '{}') as inventories,
      array(select t.name from provider_traits pt join traits t on t.id = pt.trait_id
        where pt.provider_id = p.id order by t.name) as traits,
      array(select aggregate::text from provider_aggregates a where a.provider_id = p.id order by 1) as aggregates
    from resource_providers p
    join resource_providers root on root.id = p.root_id
    left join resource_providers parent on parent.id = p.parent_id
    order by p.uuid::text`);
  const { rows: hosts } = await client.query(`select name, root_provider as provider, up, disabled from hosts`);
  return { providers: sortBy(providers, (provider) => provider.uuid), hosts: sortBy(hosts, (host) => host.name) };
}

function plain(provider: Provider) {
  return {
    uuid: provider.uuid as string,
    name: provider.name,
    parent: provider.parent as string | null,
    root: provider.root as string,
    generation: provider.generation,
    inventories: Object.fromEntries(provider.inventories),
    traits: [...provider.traits].sort(),
    aggregates: [...provider.aggregates].sort(),
  };
}

function sortBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Item[] {
  return [...items].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}
