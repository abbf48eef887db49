/** The metadata key of an aggregate that makes it an availability zone. */
export const ZONE_KEY = "availability_zone";

/** A host aggregate: the API tier's own record, whose hosts the cells' placement aggregates mirror. */
export interface AggregateRecord {
  readonly id: number;
  /** Also of the placement aggregate that mirrors it. */
  readonly uuid: string;
  readonly name: string;
  /** Holds `availability_zone`, if it is one. */
  readonly metadata: Readonly<Record<string, string>>;
  /** By name. */
  readonly hosts: readonly string[];
  readonly createdAtMs: number;
  /** Null: never changed since. */
  readonly updatedAtMs: number | null;
}

export interface NewAggregate {
  readonly uuid: string;
  readonly name: string;
  /** Null: no availability zone. */
  readonly zone: string | null;
}

export interface AggregateChange {
  readonly name?: string;
  readonly zone?: string;
}

export type AggregateUnknown = { readonly kind: "unknown" };
export type AggregateWritten = { readonly kind: "written"; readonly aggregate: AggregateRecord };
export type NameTaken = { readonly kind: "name-taken" };
/** The host is in another aggregate of another zone, and would be in two; the first such host by name. */
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
 * Host aggregates and availability zones. No host is ever in two zones, whoever writes at once; an aggregate's name is
 * unique. Both bodies (Postgres, in-memory) pass test/contract/aggregate-store. Operating failures throw the store's error.
 */
export interface AggregateStore {
  /** Rises with every change: who keeps a copy asks for this first. Cost: one row by key. */
  version(): Promise<number>;
  /** By id. */
  aggregates(): Promise<readonly AggregateRecord[]>;
  aggregate(id: number): Promise<AggregateRecord | null>;
  create(aggregate: NewAggregate): Promise<CreateAggregateOutcome>;
  /** All of the change or nothing of it. */
  update(id: number, change: AggregateChange): Promise<UpdateAggregateOutcome>;
  /** Refuses one that has hosts. Its uuid is remembered by `formerUuids`. */
  delete(id: number): Promise<DeleteAggregateOutcome>;
  addHost(id: number, host: string): Promise<AddHostOutcome>;
  removeHost(id: number, host: string): Promise<RemoveHostOutcome>;
  /** Writes the keys given; null removes one. The others stay. */
  setMetadata(id: number, metadata: Readonly<Record<string, string | null>>): Promise<SetMetadataOutcome>;
  /** Uuids of deleted aggregates: what a cell that was away may still mirror. */
  formerUuids(): Promise<readonly string[]>;
}

/** The zone that an aggregate's metadata names; null: none. */
export function zoneOfMetadata(metadata: Readonly<Record<string, string>>): string | null {
  return metadata[ZONE_KEY] ?? null;
}

/** The metadata after a change; null removes a key. */
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
