import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { isCpuFlagTrait } from "../discovery/cpu-traits.ts";
import { SPEC_KEY } from "../scheduling/request/extra-spec-groups.ts";

/**
 * The traits of CPU flags that a server's flavor requires, in any of its groups, and those that its image requires. Traits of other kinds are left
 * out, since no CPU model has them. Sorted, each once.
 *
 * Source: `get_flags_by_flavor_specs` of Nova, which leaves the image's traits out, so that their servers may get a CPU without them.
 */
export function requiredCpuTraits({ flavor, imageProperties }: ServerSpec): readonly string[] {
  const specs = [...Object.entries(flavor?.extraSpecs ?? {}), ...Object.entries(imageProperties)];
  const required = specs
    .filter(([, value]) => value === "required")
    .flatMap(([key]) => {
      const [, prefix, , name = ""] = SPEC_KEY.exec(key) ?? [];
      return prefix === "trait" && isCpuFlagTrait(name) ? [name] : [];
    });
  return [...new Set(required)].sort();
}
