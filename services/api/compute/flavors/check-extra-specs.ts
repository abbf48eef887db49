import type { Asked } from "../../../../core/scheduling/request/asked.ts";
import { checkExtraSpec } from "../../../../core/scheduling/request/check-extra-spec.ts";
import { describeRequestRefusal } from "../../../../core/scheduling/request/request-refusal.ts";
import { translateFlavor, translateResources } from "../../../../core/scheduling/request/translate-request.ts";
import type { Flavor } from "../../../../proto/gen/berth/shared.ts";

/** Returns why a flavor can never be satisfied, naming the extra spec and its value, or null when it is valid. */
export function explainBadFlavor(flavor: Flavor): string | null {
  const outcome = translateFlavor(flavor);
  return outcome.kind === "host-request" ? null : `The flavor cannot be used: ${describeRequestRefusal(outcome)}.`;
}

/** Returns the same for a flavor together with an image and ports. `problem` is the known problem of the flavor alone. */
export function explainBadRequest(
  { flavor, problem }: { readonly flavor: Flavor; readonly problem: string | null },
  { imageProperties, portRequests }: Omit<Asked, "flavor">,
): string | null {
  if (Object.keys(imageProperties).length === 0 && portRequests.length === 0) return problem;
  const outcome = translateResources({ flavor, imageProperties, portRequests });
  return outcome.kind === "host-request" ? null : `The request cannot be placed: ${describeRequestRefusal(outcome)}.`;
}

/** Returns why an extra spec is invalid by itself, naming it and its value, or null when it is valid. */
export function explainBadExtraSpec(key: string, value: string): string | null {
  const refusal = checkExtraSpec(key, value);
  return refusal && `Invalid input for field/attribute extra_specs: ${describeRequestRefusal(refusal)}.`;
}
