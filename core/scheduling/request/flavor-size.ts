import type { TranslationRule } from "./translation-rule.ts";

const MIB_PER_GIB = 1024;

/**
 * Adds VCPU, MEMORY_MB and DISK_GB from the flavor's numbers for classes that no group names. It must run after the rules that may name
 * them.
 */
export const flavorSize: TranslationRule = ({ flavor }, draft) => {
  if (!draft.names("VCPU") && !draft.names("PCPU")) draft.add("", "VCPU", flavor.vcpus);
  if (!draft.names("MEMORY_MB")) draft.add("", "MEMORY_MB", flavor.memoryMib);
  const diskGib = flavor.diskGib + flavor.ephemeralGib + Math.ceil(flavor.swapMib / MIB_PER_GIB);
  if (!draft.names("DISK_GB")) draft.add("", "DISK_GB", diskGib);
  return null;
};
