import { agreedFlag, agreedRequest, hardwareRequest } from "./hardware-request.ts";
import type { TranslationRule } from "./translation-rule.ts";

const TRAITS = { "amd-sev": "HW_CPU_X86_AMD_SEV", "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES" } as const;

/**
 * Reads `hw:mem_encryption`: it adds one MEM_ENCRYPTION_CONTEXT and the trait of the model that `hw:mem_encryption_model` names (AMD SEV by
 * default).
 */
export const memoryEncryption: TranslationRule = (asked, draft) => {
  const wanted = agreedFlag(hardwareRequest(asked, "mem_encryption"));
  if (wanted.kind !== "request") return wanted;
  const model = agreedRequest(hardwareRequest(asked, "mem_encryption_model"), ["amd-sev", "amd-sev-es"]);
  if (model.kind !== "request") return model;
  if (wanted.value !== true) return null;
  if (!draft.names("MEM_ENCRYPTION_CONTEXT")) draft.add("", "MEM_ENCRYPTION_CONTEXT", 1);
  draft.requireOfRoot(TRAITS[model.value ?? "amd-sev"]);
  return null;
};
