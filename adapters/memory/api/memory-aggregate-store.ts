import { compare } from "../../../core/ledger/ledger-state.ts";
import { type AggregateRecord, ZONE_KEY } from "../../../core/scheduling/aggregate-record.ts";
import {
  type AddHostOutcome,
  type AggregateChange,
  type AggregateStore,
  type AggregateWritten,
  type CreateAggregateOutcome,
  changedMetadata,
  type DeleteAggregateOutcome,
  type NewAggregate,
  type RemoveHostOutcome,
  type SetMetadataOutcome,
  type UpdateAggregateOutcome,
  type ZoneConflict,
  zoneOfMetadata,
} from "../../../core/stores/api/aggregate-store.ts";
import {
  changedRatios,
  type RatioScope,
  type RatioSettings,
  type RatioStore,
} from "../../../core/stores/api/ratio-store.ts";
import type { Ratios } from "../../../core/stores/cell/host-admin-store.ts";
import type { Clock } from "../../../runtime/clock.ts";

const UNKNOWN = { kind: "unknown" } as const;

/** The in-process twin of the tables of aggregates and ratios. Every call is one step. The rows live as long as this object. */
export class MemoryAggregateStore implements AggregateStore, RatioStore {
  readonly #clock: Clock;
  readonly #aggregates = new Map<number, AggregateRecord>();
  readonly #former: string[] = [];
  readonly #aggregateRatios = new Map<number, Ratios>();
  readonly #hostRatios = new Map<string, Ratios>();
  #lastId = 0;
  #version = 0;

  constructor(deps: { readonly clock: Clock }) {
    this.#clock = deps.clock;
  }

  async version(): Promise<number> {
    return this.#version;
  }

  async aggregates(): Promise<readonly AggregateRecord[]> {
    return [...this.#aggregates.values()].sort((a, b) => a.id - b.id);
  }

  async aggregate(id: number): Promise<AggregateRecord | null> {
    return this.#aggregates.get(id) ?? null;
  }

  async create({ uuid, name, zone }: NewAggregate): Promise<CreateAggregateOutcome> {
    if (this.#isNameTaken(name)) return { kind: "name-taken" };
    this.#lastId += 1;
    const metadata = zone === null ? {} : { [ZONE_KEY]: zone };
    const createdAtMs = this.#clock.now();
    return this.#put({ id: this.#lastId, uuid, name, metadata, hosts: [], createdAtMs, updatedAtMs: null });
  }

  async update(id: number, { name, zone }: AggregateChange): Promise<UpdateAggregateOutcome> {
    const aggregate = this.#aggregates.get(id);
    if (aggregate === undefined) return UNKNOWN;
    if (name !== undefined && name !== aggregate.name && this.#isNameTaken(name)) return { kind: "name-taken" };
    return this.#writeMetadata(
      { ...aggregate, name: name ?? aggregate.name },
      zone === undefined ? {} : { [ZONE_KEY]: zone },
    );
  }

  async setMetadata(id: number, metadata: Readonly<Record<string, string | null>>): Promise<SetMetadataOutcome> {
    const aggregate = this.#aggregates.get(id);
    return aggregate === undefined ? UNKNOWN : this.#writeMetadata(aggregate, metadata);
  }

  async delete(id: number): Promise<DeleteAggregateOutcome> {
    const aggregate = this.#aggregates.get(id);
    if (aggregate === undefined) return UNKNOWN;
    if (aggregate.hosts.length > 0) return { kind: "has-hosts" };
    this.#aggregates.delete(id);
    this.#aggregateRatios.delete(id);
    this.#former.push(aggregate.uuid);
    this.#version += 1;
    return { kind: "deleted", uuid: aggregate.uuid };
  }

  async addHost(id: number, host: string): Promise<AddHostOutcome> {
    const aggregate = this.#aggregates.get(id);
    if (aggregate === undefined) return UNKNOWN;
    if (aggregate.hosts.includes(host)) return { kind: "host-present" };
    const zone = zoneOfMetadata(aggregate.metadata);
    const conflict = zone === null ? null : this.#findConflict(id, [host], zone);
    return conflict ?? this.#touch({ ...aggregate, hosts: [...aggregate.hosts, host].sort(compare) });
  }

  async removeHost(id: number, host: string): Promise<RemoveHostOutcome> {
    const aggregate = this.#aggregates.get(id);
    if (aggregate === undefined) return UNKNOWN;
    if (!aggregate.hosts.includes(host)) return { kind: "host-absent" };
    return this.#touch({ ...aggregate, hosts: aggregate.hosts.filter((other) => other !== host) });
  }

  async formerUuids(): Promise<readonly string[]> {
    return [...this.#former].sort(compare);
  }

  async ratioSettings(): Promise<RatioSettings> {
    return { byAggregate: new Map(this.#aggregateRatios), byHost: new Map(this.#hostRatios) };
  }

  async changeRatios(scope: RatioScope, changes: Readonly<Record<string, number | null>>): Promise<boolean> {
    if (scope.kind === "aggregate" && !this.#aggregates.has(scope.id)) return false;
    if (scope.kind === "aggregate") changeIn(this.#aggregateRatios, scope.id, changes);
    else changeIn(this.#hostRatios, scope.host, changes);
    this.#version += 1;
    return true;
  }

  #writeMetadata(
    aggregate: AggregateRecord,
    changes: Readonly<Record<string, string | null>>,
  ): AggregateWritten | ZoneConflict {
    const zone = changes[ZONE_KEY] ?? null;
    const conflict = zone === null ? null : this.#findConflict(aggregate.id, aggregate.hosts, zone);
    return conflict ?? this.#touch({ ...aggregate, metadata: changedMetadata(aggregate.metadata, changes) });
  }

  #isNameTaken(name: string): boolean {
    return [...this.#aggregates.values()].some((other) => other.name === name);
  }

  #findConflict(id: number, hosts: readonly string[], zone: string): ZoneConflict | null {
    for (const host of hosts) {
      for (const other of this.#aggregates.values()) {
        const otherZone = zoneOfMetadata(other.metadata);
        if (other.id === id || otherZone === null || otherZone === zone || !other.hosts.includes(host)) continue;
        return { kind: "zone-conflict", host, zone: otherZone };
      }
    }
    return null;
  }

  #touch(aggregate: AggregateRecord): AggregateWritten {
    return this.#put({ ...aggregate, updatedAtMs: this.#clock.now() });
  }

  #put(aggregate: AggregateRecord): AggregateWritten {
    this.#aggregates.set(aggregate.id, aggregate);
    this.#version += 1;
    return { kind: "written", aggregate };
  }
}

function changeIn<Key>(all: Map<Key, Ratios>, key: Key, changes: Readonly<Record<string, number | null>>): void {
  const ratios = changedRatios(all.get(key) ?? {}, changes);
  if (Object.keys(ratios).length === 0) all.delete(key);
  else all.set(key, ratios);
}
