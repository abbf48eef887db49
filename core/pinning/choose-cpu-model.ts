import { cpuTraits } from "../discovery/cpu-traits.ts";

/** A CPU model of a host's list, with what its guests get. */
export interface CpuOffer {
  /** The model's name with its changes, as the hypervisor takes it. */
  readonly cpuModel: string;
  /** The flags that guests have. */
  readonly flags: readonly string[];
  /** The model's flags that the host cannot give. A guest with this model does not start unless this is empty. */
  readonly missing: readonly string[];
}

export type ChosenCpuModel =
  | { readonly kind: "chosen"; readonly cpuModel: string }
  /** `reason` is a sentence for the operator. */
  | { readonly kind: "refused"; readonly reason: string };

/** The traits that guests with one or another of the models can have. As in Nova, a host has those of all its models. */
export function traitsOfOffers(offers: readonly CpuOffer[]): readonly string[] {
  return cpuTraits(flagsOfOffers(offers)).traits;
}

/** The flags behind `traitsOfOffers`. A model that the host cannot give in full counts only if there is no other in the list. */
export function flagsOfOffers(offers: readonly CpuOffer[]): string[] {
  const counted = offers.length === 1 ? offers : offers.filter(isWhole);
  return [...new Set(counted.flatMap(({ flags }) => flags))];
}

/**
 * The first model of the list that has the required traits. Unlike Nova, flags that are added to all models count, too, and a model that the host
 * cannot give is passed over. A list of such models alone is left to the hypervisor, which says why it does not start.
 *
 * Source: `_get_guest_cpu_model_config` and `_match_cpu_model_by_flags` of Nova's driver for libvirt.
 */
export function chooseCpuModel(offers: readonly CpuOffer[], required: readonly string[]): ChosenCpuModel {
  const usable = offers.some(isWhole) ? offers.filter(isWhole) : offers;
  const found = usable.find(({ flags }) => {
    const { traits } = cpuTraits(flags);
    return required.every((trait) => traits.includes(trait));
  });
  if (found !== undefined) return { kind: "chosen", cpuModel: found.cpuModel };
  const names = offers.map(({ cpuModel, missing }) =>
    missing.length === 0 ? cpuModel : `${cpuModel} (this host lacks ${missing.join(" ")})`,
  );
  return {
    kind: "refused",
    reason: `no CPU model of the host has the traits ${required.join(", ")} that the flavor or the image requires; the models are ${names.join("; ")}`,
  };
}

const isWhole = ({ missing }: CpuOffer): boolean => missing.length === 0;
