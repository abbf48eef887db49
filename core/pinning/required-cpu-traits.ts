import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { isCpuFlagTrait } from "../discovery/cpu-traits.ts";

const TRAIT_KEY = /^trait(?:[a-zA-Z0-9_-]{1,64})?:(.*)$/;

/**
 * The traits of CPU flags that a server's flavor requires, in any of its groups, and those that its image requires. Traits of other kinds are not
 * the CPU's to have. Sorted, each once.
 *
 * Source: `get_flags_by_flavor_specs` of Nova, which leaves the image's traits out, so that their servers may get a CPU without them.
 */
export function requiredCpuTraits({ flavor, imageProperties }: ServerSpec): readonly string[] {
  const specs = [...Object.entries(flavor?.extraSpecs ?? {}), ...Object.entries(imageProperties)];
  const required = specs
    .filter(([, value]) => value === "required")
    .map(([key]) => TRAIT_KEY.exec(key)?.[1] ?? "")
    .filter(isCpuFlagTrait);
  return [...new Set(required)].sort();
}
