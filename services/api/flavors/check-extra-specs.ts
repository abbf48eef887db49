import { describeBadExtraSpec, placementQuery } from "../../../core/scheduling/placement-query.ts";
import type { Flavor } from "../../../proto/gen/berth/shared.ts";

/** Why a flavor asks for what cannot be, naming the extra spec and its value; null: it can be asked for. */
export function explainBadFlavor(flavor: Flavor): string | null {
  const outcome = placementQuery(flavor);
  return outcome.kind === "query" ? null : `The flavor cannot be used: ${describeBadExtraSpec(outcome)}.`;
}

const SOME_SIZE: Flavor = {
  id: "",
  name: "",
  vcpus: 1,
  memoryMib: 1,
  diskGib: 1,
  ephemeralGib: 0,
  swapMib: 0,
  extraSpecs: {},
};
const GROUP_OF_TRAIT = /^trait([a-zA-Z0-9_-]{1,64}):/;

/**
 * Why an extra spec is wrong by itself, naming it and its value; null: nothing is. Extra specs are written one after the
 * other, so what they lack together is no reason yet: a server of the flavor is refused until it is complete.
 */
export function explainBadExtraSpec(key: string, value: string): string | null {
  const group = GROUP_OF_TRAIT.exec(key)?.[1];
  const resources = group === undefined ? {} : { [`resources${group}:VCPU`]: "1" };
  const outcome = placementQuery({ ...SOME_SIZE, extraSpecs: { ...resources, [key]: value } });
  return outcome.kind === "query"
    ? null
    : `Invalid input for field/attribute extra_specs: ${describeBadExtraSpec(outcome)}.`;
}
