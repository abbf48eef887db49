import type { AggregateUuid, ProviderUuid, ResourceClass, Trait } from "../../../core/ledger/ids.ts";
import type { Inventory } from "../../../core/ledger/model.ts";
import type { NewProvider } from "../../../core/stores/cell/placement-store.ts";
import { arrayLiteral, compositeLiteral, textArrayLiteral } from "../client/literals.ts";
import { generationParameter } from "./prepared.ts";

/** A write of an agent to a provider. Each one replaces the previous content. */
export type ProviderWrite =
  | { readonly kind: "create"; readonly provider: NewProvider }
  | {
      readonly kind: "inventories";
      readonly uuid: ProviderUuid;
      readonly expected: number;
      readonly inventories: ReadonlyMap<ResourceClass, Inventory>;
    }
  | {
      readonly kind: "traits";
      readonly uuid: ProviderUuid;
      readonly expected: number | undefined;
      readonly traits: readonly Trait[];
    }
  | {
      readonly kind: "aggregates";
      readonly uuid: ProviderUuid;
      readonly expected: number | undefined;
      readonly aggregates: readonly AggregateUuid[];
    };

/** The literal of one `placement_writes`, with the fields in the order of the type. Cost: linear. */
export function encodeWrites(writes: readonly ProviderWrite[]): string {
  const classes = new Owned<[ResourceClass, Inventory]>();
  const traits = new Owned<Trait>();
  const aggregates = new Owned<AggregateUuid>();
  for (const write of writes) {
    classes.add(write.kind === "inventories" ? [...write.inventories] : []);
    traits.add(write.kind === "traits" ? write.traits : []);
    aggregates.add(write.kind === "aggregates" ? write.aggregates : []);
  }
  const column = (field: keyof Inventory) => arrayLiteral(classes.all.map(([, inventory]) => inventory[field]));
  const created = writes.map((write) => (write.kind === "create" ? write.provider : null));
  const expected = writes.map((write) => (write.kind === "create" ? null : generationParameter(write.expected)));
  return compositeLiteral([
    arrayLiteral(writes.map((write) => write.kind)),
    nullableArray(writes.map((write) => (write.kind === "create" ? write.provider.parent : write.uuid))),
    nullableArray(expected),
    nullableArray(created.map((provider) => provider?.uuid ?? null)),
    textArrayLiteral(created.map((provider) => provider?.name ?? null)),
    arrayLiteral(classes.ends),
    textArrayLiteral(classes.all.map(([name]) => name)),
    ...(["total", "reserved", "minUnit", "maxUnit", "stepSize", "allocationRatio"] as const).map(column),
    arrayLiteral(traits.ends),
    textArrayLiteral(traits.all),
    arrayLiteral(aggregates.ends),
    arrayLiteral(aggregates.all),
  ]);
}

const nullableArray = (values: readonly (string | number | null)[]): string =>
  arrayLiteral(values.map((value) => value ?? "null"));

/** The values of several owners, one owner after the other, with the end of each owner's part. */
class Owned<Value> {
  readonly all: Value[] = [];
  readonly ends: number[] = [];

  add(values: readonly Value[]): void {
    this.all.push(...values);
    this.ends.push(this.all.length);
  }
}
