import type { Pool } from "pg";
import { type HypervisorFacts, hypervisorOf } from "../../../core/ledger/hypervisor-facts.ts";
import type {
  AdminHost,
  ConductorSighting,
  HostAdminStore,
  HostInventory,
  HostRemoval,
  HostTreeRecord,
  MirrorChange,
  OperatorState,
  RatioChange,
  Ratios,
} from "../../../core/stores/cell/host-admin-store.ts";
import { queryStored, selectMs } from "../client/store-query.ts";

interface AdminHostRow {
  readonly name: string;
  readonly root_provider: string;
  readonly agent_id: string;
  readonly up: boolean;
  readonly disabled: boolean;
  readonly disabled_reason: string | null;
  readonly forced_down: boolean;
  readonly seen_at_ms: number;
  readonly hypervisor: Partial<HypervisorFacts>;
}

interface ConductorRow extends Omit<ConductorSighting, "renewedAtMs"> {
  readonly renewed_at_ms: number | null;
}

interface OperatorStateRow {
  readonly name: string;
  readonly root_provider: string;
  readonly aggregates: string[];
  readonly ratios: Ratios;
  readonly ratios_hold: boolean;
}

interface TreeRow {
  readonly provider: string;
  readonly provider_name: string;
  readonly parent: string | null;
  readonly traits: string[];
  readonly is_reported: boolean;
  readonly updated_at_ms: number;
  readonly kept: HostTreeRecord["kept"];
  readonly refusal: string;
}

interface InventoryRow {
  readonly host: string;
  readonly provider: string;
  readonly provider_name: string;
  readonly class: string;
  readonly total: number;
  readonly reserved: number;
  readonly used: number;
  readonly allocation_ratio: number;
  readonly reported_ratio: number | null;
}

/** The operators' settings for a cell's hosts, in the cell's database. Throws `StoreError`. All calls may be repeated. */
export class PostgresHostAdminStore implements HostAdminStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async adminHosts(names: readonly string[] | null): Promise<readonly AdminHost[]> {
    const rows = await queryStored<AdminHostRow>(this.#pool, {
      name: "admin_hosts",
      text: `select h.name, h.root_provider, h.agent_id, h.up, h.disabled, h.disabled_reason, h.forced_down, h.hypervisor,
          ${selectMs("seen_at", "a.")}
        from hosts h join agents a on a.id = h.agent_id
        where $1::text[] is null or h.name = any ($1) order by h.name collate "C"`,
      values: [names],
    });
    return rows.map((row) => ({
      name: row.name,
      rootProvider: row.root_provider,
      agentId: row.agent_id,
      up: row.up,
      disabled: row.disabled,
      disabledReason: row.disabled_reason,
      forcedDown: row.forced_down,
      seenAtMs: row.seen_at_ms,
      hypervisor: hypervisorOf(row.hypervisor),
    }));
  }

  async conductors(): Promise<readonly ConductorSighting[]> {
    const rows = await queryStored<ConductorRow>(this.#pool, {
      name: "conductors",
      text: `select id, name, lease_expires_at > now() as alive, ${selectMs("renewed_at")}, coalesce(t.tasks, 0)::integer as tasks
        from conductors
        left join (select owner, count(*) as tasks from tasks where outcome is null group by owner) t on t.owner = id
        order by id`,
      values: [],
    });
    return rows.map(({ renewed_at_ms: renewedAtMs, ...row }) => ({ ...row, renewedAtMs }));
  }

  async setDisabled(host: string, disabled: boolean, reason: string | null): Promise<boolean> {
    const [row] = await queryStored<{ known: boolean }>(this.#pool, {
      name: "set_host_disabled",
      text: "select cell_set_host_disabled($1, $2, $3) as known",
      values: [host, disabled, disabled ? reason : null],
    });
    return row?.known === true;
  }

  async setForcedDown(host: string, forcedDown: boolean): Promise<boolean> {
    const rows = await queryStored(this.#pool, {
      name: "set_host_forced_down",
      text: `update hosts set forced_down = $2, up = up and not $2, updated_at = now() where name = $1 returning name`,
      values: [host, forcedDown],
    });
    return rows.length > 0;
  }

  async removeHost(host: string, unseenMs: number): Promise<HostRemoval> {
    const [row] = await queryStored<{ outcome: HostRemoval }>(this.#pool, {
      name: "remove_host",
      text: "select cell_remove_host($1, $2) as outcome",
      values: [host, unseenMs],
    });
    return row!.outcome;
  }

  async removeConductor(id: string): Promise<boolean> {
    const rows = await queryStored(this.#pool, {
      name: "remove_conductor",
      text: "delete from conductors where id = $1 and lease_expires_at <= now() returning id",
      values: [id],
    });
    return rows.length > 0;
  }

  async operatorState(
    aggregates: readonly string[],
    hosts: readonly string[] | null = null,
  ): Promise<readonly OperatorState[]> {
    const rows = await queryStored<OperatorStateRow>(this.#pool, {
      name: "operator_state",
      text: `with overridden as (
          select o.root, jsonb_object_agg(o.class, o.ratio) as ratios,
            not exists (
              select from resource_providers r
              join resource_providers p on p.root_id = r.id
              join inventories v on v.provider_id = p.id
              join resource_classes c on c.id = v.class_id
              join ratio_overrides w on w.root = r.uuid and w.class = c.name
              where r.uuid = o.root and v.allocation_ratio <> w.ratio
            ) as hold
          from ratio_overrides o group by o.root
        ),
        mirrored as (
          select p.uuid as root, array_agg(q.aggregate::text order by q.aggregate) as aggregates
          from provider_aggregates q join resource_providers p on p.id = q.provider_id
          where q.aggregate = any ($1) group by p.uuid
        )
        select h.name, h.root_provider, coalesce(m.aggregates, '{}') as aggregates,
          coalesce(o.ratios, '{}') as ratios, coalesce(o.hold, true) as ratios_hold
        from hosts h
        left join mirrored m on m.root = h.root_provider
        left join overridden o on o.root = h.root_provider
        where $2::text[] is null or h.name = any ($2)
        order by h.name collate "C"`,
      values: [aggregates, hosts],
    });
    return rows.map((row) => ({
      host: row.name,
      rootProvider: row.root_provider,
      aggregates: row.aggregates,
      ratios: row.ratios,
      ratiosHold: row.ratios_hold,
    }));
  }

  async mirrorAggregates(changes: readonly MirrorChange[]): Promise<void> {
    if (changes.length === 0) return;
    const added = changes.flatMap(({ rootProvider, add }) =>
      add.map((aggregate) => [rootProvider, aggregate] as const),
    );
    const dropped = changes.flatMap(({ rootProvider, remove }) =>
      remove.map((aggregate) => [rootProvider, aggregate] as const),
    );
    await queryStored(this.#pool, {
      name: "mirror_aggregates",
      text: "select cell_mirror_aggregates($1, $2, $3, $4)",
      values: [
        added.map(([root]) => root),
        added.map(([, aggregate]) => aggregate),
        dropped.map(([root]) => root),
        dropped.map(([, aggregate]) => aggregate),
      ],
    });
  }

  async setRatios(changes: readonly RatioChange[]): Promise<void> {
    if (changes.length === 0) return;
    const entries = changes.flatMap(({ ratios }, index) =>
      Object.entries(ratios).map(([name, ratio]) => ({ root: index + 1, name, ratio })),
    );
    await queryStored(this.#pool, {
      name: "set_ratios",
      text: "select cell_set_ratios($1, $2, $3, $4)",
      values: [
        changes.map((change) => change.rootProvider),
        entries.map((entry) => entry.root),
        entries.map((entry) => entry.name),
        entries.map((entry) => entry.ratio),
      ],
    });
  }

  async inventories(host: string): Promise<readonly HostInventory[]> {
    const rows = await queryStored<InventoryRow>(this.#pool, {
      name: "host_inventories",
      text: `select h.name as host, p.uuid as provider, p.name as provider_name, c.name as class,
          v.total, v.reserved, v.used, v.allocation_ratio, s.ratio as reported_ratio
        from hosts h
        join resource_providers r on r.uuid = h.root_provider
        join resource_providers p on p.root_id = r.id
        join inventories v on v.provider_id = p.id
        join resource_classes c on c.id = v.class_id
        left join ratio_overrides o on o.root = r.uuid and o.class = c.name
        left join reported_ratios s on o.root is not null and s.provider = p.uuid and s.class = c.name
        where h.name = $1 order by p.name collate "C", c.name collate "C"`,
      values: [host],
    });
    return rows.map((row) => ({
      host: row.host,
      provider: row.provider,
      providerName: row.provider_name,
      resourceClass: row.class,
      total: row.total,
      reserved: row.reserved,
      used: row.used,
      allocationRatio: row.allocation_ratio,
      reportedRatio: row.reported_ratio,
    }));
  }

  async treeOf(host: string): Promise<HostTreeRecord> {
    const rows = await queryStored<TreeRow>(this.#pool, {
      name: "host_tree",
      text: `select p.uuid as provider, p.name as provider_name, parent.uuid as parent,
          array(
            select t.name from provider_traits q join traits t on t.id = q.trait_id
            where q.provider_id = p.id order by t.name collate "C"
          ) as traits,
          coalesce(w.providers ? p.uuid::text, false) as is_reported, ${selectMs("updated_at", "p.")},
          coalesce(w.kept, '[]') as kept, coalesce(w.refusal, '') as refusal
        from hosts h
        join resource_providers r on r.uuid = h.root_provider
        join resource_providers p on p.root_id = r.id
        left join resource_providers parent on parent.id = p.parent_id
        left join reported_trees w on w.root = r.uuid
        where h.name = $1 order by p.name collate "C"`,
      values: [host],
    });
    return {
      providers: rows.map((row) => ({
        provider: row.provider,
        providerName: row.provider_name,
        parent: row.parent,
        traits: row.traits,
        isReported: row.is_reported,
        changedAtMs: row.updated_at_ms,
      })),
      kept: rows[0]?.kept ?? [],
      refusal: rows[0]?.refusal ?? "",
    };
  }
}
