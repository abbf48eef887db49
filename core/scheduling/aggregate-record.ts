/** The metadata key of an aggregate that makes it an availability zone. */
export const ZONE_KEY = "availability_zone";

/** A host aggregate: the API tier's own record, whose hosts the cells' placement aggregates mirror. */
export interface AggregateRecord {
  readonly id: number;
  /** The placement aggregate that mirrors this host aggregate has the same UUID. */
  readonly uuid: string;
  readonly name: string;
  /** Contains `availability_zone` when the aggregate is an availability zone. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Host names, sorted. */
  readonly hosts: readonly string[];
  readonly createdAtMs: number;
  /** Null when the aggregate was never changed after its creation. */
  readonly updatedAtMs: number | null;
}
