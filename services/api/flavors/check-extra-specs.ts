import type { Flavor } from "../../../proto/gen/berth/shared.ts";

/** Why a flavor asks for what cannot be, naming the extra spec and its value; null: nothing is wrong with it. */
export function checkExtraSpecs(_flavor: Flavor): string | null {
  return null;
}
