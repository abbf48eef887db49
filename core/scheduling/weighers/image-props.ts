import { weighFacts } from "./weigh-facts.ts";
import type { RelativeWeigher } from "./weigher.ts";
import type { WeigherSettings } from "./weigher-settings.ts";

/**
 * Prefers hosts whose servers' images have the properties of the request's image. Each property counts with its ratio, or all count alike
 * (Nova's ImagePropertiesWeigher). Cost: one look at each server of each host. It is off unless its multiplier is set.
 */
export function imageProps({ imagePropsWeightSetting }: WeigherSettings): RelativeWeigher {
  const ratios = new Map(Object.entries(imagePropsWeightSetting));
  return {
    name: "image_props",
    kind: "relative",
    reads: ["image"],
    weigh(batch, weights, offset) {
      const asked = Object.entries(batch.spec?.imageProperties ?? {})
        .map(([name, value]) => ({ name, value, ratio: ratios.size === 0 ? 1 : (ratios.get(name) ?? 0) }))
        .filter(({ ratio }) => ratio !== 0);
      if (asked.length === 0) return false;
      return weighFacts(batch, weights, offset, ({ servers }) => {
        let sum = 0;
        for (const { imageProperties } of servers.values()) {
          for (const { name, value, ratio } of asked) if (imageProperties[name] === value) sum += ratio;
        }
        return sum;
      });
    },
  };
}
