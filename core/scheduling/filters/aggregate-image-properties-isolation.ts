import type { SchedulingSettings } from "../scheduling-settings.ts";
import { metadataOf } from "./aggregate-metadata.ts";
import type { HostFilter } from "./host-filter.ts";

/**
 * Passes hosts whose aggregates' metadata does not contradict the image. When metadata and the image's properties have the same key, the
 * property's value must be among the metadata's values. With a namespace, only keys that begin with it and the separator are compared.
 */
export function aggregateImagePropertiesIsolation(settings: SchedulingSettings): HostFilter {
  const {
    aggregateImagePropertiesIsolationNamespace: namespace,
    aggregateImagePropertiesIsolationSeparator: separator,
  } = settings;
  const prefix = namespace === "" ? "" : namespace + separator;
  return {
    name: "AggregateImagePropertiesIsolation",
    decidedBy: "kind",
    reads: ["image"],
    bind({ imageProperties }, { facts }) {
      const properties = Object.entries(imageProperties).filter(
        ([key, value]) => value !== "" && key.startsWith(prefix) && facts.hasMetadata(key),
      );
      if (properties.length === 0) return null;
      return ({ aggregates }) => {
        const metadata = metadataOf(aggregates);
        const matches = properties.every(([key, value]) => metadata.get(key)?.has(value) ?? true);
        return matches ? null : "in an aggregate for other images";
      };
    },
  };
}
