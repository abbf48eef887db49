import { type AggregateRecord, ZONE_KEY } from "../../scheduling/aggregate-record.ts";

export interface NewAggregate {
  readonly uuid: string;
  readonly name: string;
  /** Null when the aggregate is not an availability zone. */
  readonly zone: string | null;
}

export interface AggregateChange {
  readonly name?: string;
  readonly zone?: string;
}

export type AggregateUnknown = { readonly kind: "unknown" };
export type AggregateWritten = { readonly kind: "written"; readonly aggregate: AggregateRecord };
export type NameTaken = { readonly kind: "name-taken" };
/**
 * The host already belongs to an aggregate of another zone, and a host may be in one zone only. Names the first such host in sorted order.
 */
export type ZoneConflict = { readonly kind: "zone-conflict"; readonly host: string; readonly zone: string };

export type CreateAggregateOutcome = AggregateWritten | NameTaken;
export type UpdateAggregateOutcome = AggregateWritten | AggregateUnknown | NameTaken | ZoneConflict;
export type AddHostOutcome = AggregateWritten | AggregateUnknown | ZoneConflict | { readonly kind: "host-present" };
export type RemoveHostOutcome = AggregateWritten | AggregateUnknown | { readonly kind: "host-absent" };
export type SetMetadataOutcome = AggregateWritten | AggregateUnknown | ZoneConflict;
export type DeleteAggregateOutcome =
  | { readonly kind: "deleted"; readonly uuid: string }
  | AggregateUnknown
  | { readonly kind: "has-hosts" };

/**
 * Host aggregates and availability zones. A host is never in two zones, even when several callers write at the same time. The name of an
 * aggregate is unique. Both implementations (Postgres, in-memory) pass test/contract/aggregate-store. Operating failures throw the store's
 * error.
 */
export interface AggregateStore {
  /**
   * A number that rises with every change, so that a caller with a copy can see cheaply whether the copy is current. Cost: one row by key.
   */
  version(): Promise<number>;
  /** All host aggregates, sorted by id. */
  aggregates(): Promise<readonly AggregateRecord[]>;
  aggregate(id: number): Promise<AggregateRecord | null>;
  create(aggregate: NewAggregate): Promise<CreateAggregateOutcome>;
  /** Applies the whole change or nothing of it. */
  update(id: number, change: AggregateChange): Promise<UpdateAggregateOutcome>;
  /** Refuses to delete an aggregate that has hosts. The UUID of a deleted aggregate is listed by `formerUuids`. */
  delete(id: number): Promise<DeleteAggregateOutcome>;
  addHost(id: number, host: string): Promise<AddHostOutcome>;
  removeHost(id: number, host: string): Promise<RemoveHostOutcome>;
  /** Writes the given keys. A null value removes its key, and all other keys stay. */
  setMetadata(id: number, metadata: Readonly<Record<string, string | null>>): Promise<SetMetadataOutcome>;
  /** UUIDs of deleted aggregates. A cell that was unreachable may still mirror them. */
  formerUuids(): Promise<readonly string[]>;
}

/** The zone that an aggregate's metadata names, or null when it names none. */
export function zoneOfMetadata(metadata: Readonly<Record<string, string>>): string | null {
  return metadata[ZONE_KEY] ?? null;
}

/** Returns the metadata after a change, in which a null value removes its key. */
export function changedMetadata(
  metadata: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, string | null>>,
): Readonly<Record<string, string>> {
  const changed = new Map(Object.entries(metadata));
  for (const [key, value] of Object.entries(changes)) {
    if (value === null) changed.delete(key);
    else changed.set(key, value);
  }
  return Object.fromEntries(changed);
}
