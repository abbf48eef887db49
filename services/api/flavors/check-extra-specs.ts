import type { Asked } from "../../../core/scheduling/request/asked.ts";
import { checkExtraSpec } from "../../../core/scheduling/request/check-extra-spec.ts";
import { describeRequestRefusal } from "../../../core/scheduling/request/request-refusal.ts";
import { translateFlavor, translateResources } from "../../../core/scheduling/request/translate-request.ts";
import type { Flavor } from "../../../proto/gen/berth/shared.ts";

/** Why a flavor asks for what cannot be, naming the extra spec and its value; null: it can be asked for. */
export function explainBadFlavor(flavor: Flavor): string | null {
  const outcome = translateFlavor(flavor);
  return outcome.kind === "query" ? null : `The flavor cannot be used: ${describeRequestRefusal(outcome)}.`;
}

/** The same of a flavor together with an image and ports; `problem`: what is known of the flavor alone. */
export function explainBadRequest(
  { flavor, problem }: { readonly flavor: Flavor; readonly problem: string | null },
  { imageProperties, portRequests }: Omit<Asked, "flavor">,
): string | null {
  if (Object.keys(imageProperties).length === 0 && portRequests.length === 0) return problem;
  const outcome = translateResources({ flavor, imageProperties, portRequests });
  return outcome.kind === "query" ? null : `The request cannot be placed: ${describeRequestRefusal(outcome)}.`;
}

/** Why an extra spec is wrong by itself, naming it and its value; null: nothing is. */
export function explainBadExtraSpec(key: string, value: string): string | null {
  const refusal = checkExtraSpec(key, value);
  return refusal && `Invalid input for field/attribute extra_specs: ${describeRequestRefusal(refusal)}.`;
}
