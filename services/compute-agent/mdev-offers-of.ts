import type { MdevOffer } from "../../core/discovery/divided-cards.ts";
import { SettingsError } from "../../runtime/settings.ts";
import type { DiscoveryOptions, OfMdevType } from "./discovery-settings.ts";

type MdevOptions = Pick<
  DiscoveryOptions,
  "enabledMdevTypes" | "mdevClasses" | "mdevTraits" | "mdevMaxInstances" | "mdevDeviceAddresses"
>;

/**
 * Puts together what the settings say of each enabled type of mediated devices. Throws a SettingsError for a type that is not enabled or is named twice,
 * and for a card that is named for two types.
 */
export function mdevOffersOf(options: MdevOptions): readonly MdevOffer[] {
  const enabled = options.enabledMdevTypes ?? [];
  const classes = byType("mdev-classes", options.mdevClasses, enabled);
  const traits = byType("mdev-traits", options.mdevTraits, enabled);
  const limits = byType("mdev-max-instances", options.mdevMaxInstances, enabled);
  const addresses = byType("mdev-device-addresses", options.mdevDeviceAddresses, enabled);
  const typeOf = new Map<string, string>();
  for (const [type, cards] of addresses)
    for (const card of cards) {
      const other = typeOf.get(card);
      if (other !== undefined && other !== type)
        throw new SettingsError(
          `mdev-device-addresses names card ${card} for ${other} and for ${type}: a card is divided into one type`,
        );
      typeOf.set(card, type);
    }
  return [...new Set(enabled)].map((type) => ({
    type,
    resourceClass: classes.get(type) ?? "VGPU",
    traits: traits.get(type) ?? [],
    instancesMax: limits.get(type) ?? null,
    addresses: addresses.get(type) ?? [],
  }));
}

function byType<Value>(
  setting: string,
  given: readonly OfMdevType<Value>[] | null,
  enabled: readonly string[],
): ReadonlyMap<string, Value> {
  const values = new Map<string, Value>();
  for (const { type, value } of given ?? []) {
    if (!enabled.includes(type))
      throw new SettingsError(
        `${setting} names ${type}, which enabled-mdev-types does not: it names ${enabled.join(",") || "none"}`,
      );
    if (values.has(type)) throw new SettingsError(`${setting} names ${type} twice: give it one value`);
    values.set(type, value);
  }
  return values;
}
