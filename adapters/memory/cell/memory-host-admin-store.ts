import {
  type AggregateUuid,
  aggregateUuid,
  type ProviderUuid,
  providerUuid,
  resourceClass,
} from "../../../core/ledger/ids.ts";
import { compare } from "../../../core/ledger/ledger-state.ts";
import type { Provider } from "../../../core/ledger/model.ts";
import { COMPUTE_STATUS_DISABLED, treeAsReported } from "../../../core/ledger/operators-word.ts";
import type { ProviderSpec } from "../../../core/ledger/provider-tree.ts";
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
import type { Clock } from "../../../runtime/clock.ts";
import type { CellState, HostRow } from "./cell-state.ts";
import { hostChange } from "./memory-host-steps.ts";
import type { MemoryLedger, MemoryTransaction } from "./memory-ledger.ts";

/** The in-process twin of the operators' settings for a cell's hosts. It works on the rows of a `MemoryCellStore` and its ledger. */
export class MemoryHostAdminStore implements HostAdminStore {
  readonly #cell: CellState;
  readonly #ledger: MemoryLedger;
  readonly #clock: Pick<Clock, "now">;

  constructor(cell: CellState, ledger: MemoryLedger, clock: Pick<Clock, "now">) {
    this.#cell = cell;
    this.#ledger = ledger;
    this.#clock = clock;
  }

  async adminHosts(names: readonly string[] | null): Promise<readonly AdminHost[]> {
    return this.#hosts()
      .filter((host) => names === null || names.includes(host.name))
      .map(({ name, rootProvider, agentId, up, disabled, hypervisor }) => ({
        ...{ name, rootProvider, agentId, up, disabled, hypervisor },
        disabledReason: this.#cell.disabledReasons.get(name) ?? null,
        forcedDown: this.#cell.forcedDown.has(name),
        seenAtMs: this.#cell.agents.get(agentId) ?? 0,
      }));
  }

  async conductors(): Promise<readonly ConductorSighting[]> {
    const nowMs = this.#clock.now();
    const open = [...this.#cell.tasks.values()].filter(({ outcome }) => outcome === null);
    return Array.from(this.#cell.leases, ([id, untilMs]) => ({
      ...{ id, name: this.#cell.conductorNames.get(id) ?? id },
      alive: untilMs > nowMs,
      renewedAtMs: this.#cell.leaseRenewals.get(id) ?? null,
      tasks: open.filter(({ owner }) => owner === id).length,
    })).sort((a, b) => compare(a.id, b.id));
  }

  async setDisabled(name: string, disabled: boolean, reason: string | null): Promise<boolean> {
    const host = this.#cell.hosts.get(name);
    if (host === undefined) return false;
    const root = providerUuid(host.rootProvider);
    this.#ledger.transact((tx) => {
      host.disabled = disabled;
      if (disabled && reason !== null) this.#cell.disabledReasons.set(name, reason);
      else this.#cell.disabledReasons.delete(name);
      this.#ledger.operators.setDisabled(root, disabled);
      this.#rewrite(tx, root, (spec) => {
        if (spec.uuid !== root) return spec;
        const traits = new Set(spec.traits);
        if (disabled) traits.add(COMPUTE_STATUS_DISABLED);
        else traits.delete(COMPUTE_STATUS_DISABLED);
        return { ...spec, traits };
      });
      tx.emit(hostChange(host));
    });
    return true;
  }

  async setForcedDown(name: string, forcedDown: boolean): Promise<boolean> {
    const host = this.#cell.hosts.get(name);
    if (host === undefined) return false;
    this.#ledger.transact((tx) => {
      if (forcedDown) this.#cell.forcedDown.add(name);
      else this.#cell.forcedDown.delete(name);
      host.up &&= !forcedDown;
      tx.emit(hostChange(host));
    });
    return true;
  }

  async removeHost(name: string, unseenMs: number): Promise<HostRemoval> {
    const host = this.#cell.hosts.get(name);
    if (host === undefined) return "unknown";
    const refusal = this.#keepsHost(host, unseenMs);
    if (refusal !== null) return refusal;
    this.#ledger.transact((tx) => {
      const root = providerUuid(host.rootProvider);
      tx.removeTree(root);
      this.#ledger.operators.forget(root);
      this.#ledger.reports.forget(root);
      const { hosts, forcedDown, disabledReasons, compared, quarantined } = this.#cell;
      for (const table of [hosts, forcedDown, disabledReasons, compared]) table.delete(name);
      for (const [key, guest] of quarantined) if (guest.host === name) quarantined.delete(key);
      tx.emit({ kind: "host-removed", host: name });
    });
    return "removed";
  }

  /** Why the host must not be removed, or null. */
  #keepsHost({ name, rootProvider, agentId }: HostRow, unseenMs: number): HostRemoval | null {
    const { servers, migrations, quarantined, forcedDown, agents } = this.#cell;
    if (servers.values().some((one) => one.host === name && one.status !== "DELETED" && one.status !== "CLOSED"))
      return "has-servers";
    const moves = [...migrations.values()];
    if (moves.some((one) => !one.ended && (one.sourceHost === name || one.destHost === name))) return "has-moves";
    const tree = this.#ledger.present().providers.filter((provider) => provider.root === rootProvider);
    const isUsed = tree.some(({ inventories }) => inventories.values().some(({ used }) => used > 0));
    if (isUsed || moves.some((one) => one.holdsSource && one.sourceHost === name)) return "has-allocations";
    if (quarantined.values().some((guest) => guest.host === name && !guest.condemned)) return "has-quarantined-guests";
    const seenAtMs = agents.get(agentId) ?? Number.NEGATIVE_INFINITY;
    return !forcedDown.has(name) && seenAtMs > this.#clock.now() - unseenMs ? "agent-seen" : null;
  }

  async removeConductor(id: string): Promise<boolean> {
    const untilMs = this.#cell.leases.get(id);
    if (untilMs === undefined || untilMs > this.#clock.now()) return false;
    this.#cell.leases.delete(id);
    this.#cell.leaseRenewals.delete(id);
    return this.#cell.conductorNames.delete(id);
  }

  async operatorState(
    aggregates: readonly string[],
    hosts: readonly string[] | null = null,
  ): Promise<readonly OperatorState[]> {
    const { providers } = await this.#ledger.dump();
    const asked = this.#hosts().filter((host) => hosts === null || hosts.includes(host.name));
    return asked.map(({ name, rootProvider }) => {
      const tree = providers.filter((provider) => provider.root === rootProvider);
      const ratios = this.#ledger.operators.ratiosOf(providerUuid(rootProvider));
      const root = tree.find((provider) => provider.uuid === rootProvider);
      return {
        host: name,
        rootProvider,
        aggregates: [...(root?.aggregates ?? [])].filter((uuid) => aggregates.includes(uuid)).sort(compare),
        ratios: Object.fromEntries(ratios),
        ratiosHold: tree.every((provider) =>
          [...provider.inventories].every(
            ([key, { allocationRatio }]) => (ratios.get(key) ?? allocationRatio) === allocationRatio,
          ),
        ),
      };
    });
  }

  async mirrorAggregates(changes: readonly MirrorChange[]): Promise<void> {
    this.#ledger.transact((tx) => {
      for (const { rootProvider, add, remove } of changes) {
        this.#rewrite(tx, providerUuid(rootProvider), (spec) => {
          if (spec.uuid !== rootProvider) return spec;
          const aggregates = new Set<AggregateUuid>([...(spec.aggregates ?? []), ...add.map(aggregateUuid)]);
          for (const uuid of remove) aggregates.delete(aggregateUuid(uuid));
          return { ...spec, aggregates };
        });
      }
    });
  }

  async setRatios(changes: readonly RatioChange[]): Promise<void> {
    this.#ledger.transact((tx) => {
      for (const { rootProvider, ratios } of changes) this.#setRatios(tx, providerUuid(rootProvider), ratios);
    });
  }

  async inventories(name: string): Promise<readonly HostInventory[]> {
    const host = this.#cell.hosts.get(name);
    if (host === undefined) return [];
    const { providers } = await this.#ledger.dump();
    return providers
      .filter((provider) => provider.root === host.rootProvider)
      .flatMap((provider) => this.#inventoriesOf(name, provider))
      .sort((a, b) => compare(a.providerName, b.providerName) || compare(a.resourceClass, b.resourceClass));
  }

  async treeOf(name: string): Promise<HostTreeRecord> {
    const host = this.#cell.hosts.get(name);
    if (host === undefined) return { providers: [], kept: [], refusal: "" };
    const { reported, kept, refusal } = this.#ledger.reports.latestOf(providerUuid(host.rootProvider));
    const { providers } = await this.#ledger.dump();
    const members = providers
      .filter((provider) => provider.root === host.rootProvider)
      .map(({ uuid, name: providerName, parent, traits }) => ({
        ...{ provider: uuid, providerName, parent, traits: [...traits] },
        ...{ isReported: reported.has(uuid), changedAtMs: null },
      }))
      .sort((a, b) => compare(a.providerName, b.providerName));
    return { providers: members, kept, refusal };
  }

  #inventoriesOf(host: string, { uuid, name: providerName, root, inventories }: Provider): HostInventory[] {
    const { operators } = this.#ledger;
    return Array.from(inventories, ([key, { total, reserved, used, allocationRatio }]) => ({
      ...{ host, provider: uuid, providerName, resourceClass: key, total, reserved, used, allocationRatio },
      reportedRatio: operators.ratiosOf(root).has(key) ? operators.reportedRatio(uuid, key) : null,
    }));
  }

  #setRatios(tx: MemoryTransaction, root: ProviderUuid, ratios: Ratios): void {
    const { operators } = this.#ledger;
    const before = operators.ratiosOf(root);
    const after = new Map(Object.entries(ratios).map(([name, ratio]) => [resourceClass(name), ratio]));
    operators.setRatios(root, after);
    this.#rewrite(tx, root, (spec) => ({
      ...spec,
      inventories: new Map(
        Array.from(spec.inventories, ([key, inventory]) => {
          const reported = before.has(key) ? operators.reportedRatio(spec.uuid, key) : null;
          const base = reported ?? inventory.allocationRatio;
          operators.noteReported(spec.uuid, key, after.has(key) ? base : null);
          return [key, { ...inventory, allocationRatio: after.get(key) ?? base }];
        }),
      ),
    }));
  }

  #rewrite(tx: MemoryTransaction, root: ProviderUuid, change: (spec: ProviderSpec) => ProviderSpec): void {
    const tree = treeAsReported(tx.providers(), root);
    if (tree !== null) tx.putTreeAsGiven({ root, providers: tree.providers.map(change) });
  }

  #hosts(): readonly HostRow[] {
    return [...this.#cell.hosts.values()].sort((a, b) => compare(a.name, b.name));
  }
}
