import { CPU_POLICIES } from "./cpu-plan.ts";
import { extraSpecGroups } from "./extra-spec-groups.ts";
import { orList } from "./hardware-request.ts";
import { HostRequestDraft } from "./host-request-draft.ts";
import { badExtraSpec, type RequestRefusal } from "./request-refusal.ts";

const SOME_SIZE = { id: "", name: "", vcpus: 1, memoryMib: 1, diskGib: 1, ephemeralGib: 0, swapMib: 0 };

const CHOICES: Readonly<Record<string, readonly string[]>> = {
  "hw:cpu_policy": CPU_POLICIES,
  "hw:cpu_thread_policy": ["prefer", "isolate", "require"],
  "hw:emulator_threads_policy": ["isolate", "share"],
  "hw:pci_numa_affinity_policy": ["required", "preferred", "legacy", "socket"],
  "hw:tpm_version": ["1.2", "2.0"],
  "hw:tpm_model": ["tpm-tis", "tpm-crb"],
  "hw:mem_encryption_model": ["amd-sev", "amd-sev-es"],
  "os:secure_boot": ["required", "optional", "disabled"],
};

/**
 * Why an extra spec is invalid by itself, or null when it is valid. Extra specs are written one after the other, so a missing companion is
 * accepted for now: servers of the flavor are refused until it is complete.
 */
export function checkExtraSpec(key: string, value: string): RequestRefusal | null {
  const choices = Object.hasOwn(CHOICES, key) ? CHOICES[key] : undefined;
  if (choices && !choices.includes(value)) return badExtraSpec(key, value, orList(choices));
  const flavor = { ...SOME_SIZE, extraSpecs: { [key]: value } };
  return extraSpecGroups({ flavor, imageProperties: {}, portRequests: [] }, new HostRequestDraft());
}
