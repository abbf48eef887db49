import { checkExtraSpec } from "../../../core/scheduling/request/check-extra-spec.ts";
import { describeRequestRefusal } from "../../../core/scheduling/request/request-refusal.ts";
import { translateFlavor } from "../../../core/scheduling/request/translate-request.ts";
import type { Flavor } from "../../../proto/gen/berth/shared.ts";

/** Why a flavor asks for what cannot be, naming the extra spec and its value; null: it can be asked for. */
export function explainBadFlavor(flavor: Flavor): string | null {
  const outcome = translateFlavor(flavor);
  return outcome.kind === "query" ? null : `The flavor cannot be used: ${describeRequestRefusal(outcome)}.`;
}

/** Why an extra spec is wrong by itself, naming it and its value; null: nothing is. */
export function explainBadExtraSpec(key: string, value: string): string | null {
  const refusal = checkExtraSpec(key, value);
  return refusal && `Invalid input for field/attribute extra_specs: ${describeRequestRefusal(refusal)}.`;
}
