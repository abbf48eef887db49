import type { ResourceClass, Trait } from "../../../../core/ledger/ids.ts";
import type { PlacementStore } from "../../../../core/stores/cell/placement-store.ts";
import { placementBadRequest } from "../placement-error.ts";

/** Throws 400 when a resource class of a query does not exist. */
export async function requireKnownClasses(store: PlacementStore, names: readonly ResourceClass[]): Promise<void> {
  if (names.length === 0) return;
  const known = new Set((await store.resourceClasses()).map((row) => row.name));
  const unknown = names.find((name) => !known.has(name));
  if (unknown !== undefined) throw unknownClass(unknown);
}

export const unknownClass = (name: ResourceClass) =>
  placementBadRequest(`Invalid resource class in resources parameter: No such resource class ${name}.`);

/** `names` sorted. */
export const unknownTraits = (names: readonly Trait[], prefix = "") =>
  placementBadRequest(`${prefix}No such trait(s): ${names.join(", ")}.`);

/** Throws 400 when a trait of a query does not exist, naming all unknown traits. */
export async function requireKnownTraits(
  store: PlacementStore,
  names: readonly Trait[],
  prefix: string,
): Promise<void> {
  if (names.length === 0) return;
  const known = new Set((await store.allTraits({})).map((row) => row.name));
  const unknown = [...new Set(names.filter((name) => !known.has(name)))].sort();
  if (unknown.length > 0) throw unknownTraits(unknown, prefix);
}
