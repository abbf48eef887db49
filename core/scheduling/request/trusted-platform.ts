import { agreedRequest, hardwareRequest } from "./hardware-request.ts";
import { badExtraSpec } from "./request-refusal.ts";
import type { TranslationRule } from "./translation-rule.ts";

/**
 * Reads `hw:tpm_version` and `hw:tpm_model`: it requires the traits of a host with such an emulated TPM. CRB exists in version 2.0 only.
 */
export const trustedPlatform: TranslationRule = (asked, draft) => {
  const version = agreedRequest(hardwareRequest(asked, "tpm_version"), ["1.2", "2.0"]);
  if (version.kind !== "request") return version;
  const model = agreedRequest(hardwareRequest(asked, "tpm_model"), ["tpm-tis", "tpm-crb"]);
  if (model.kind !== "request") return model;
  if (version.value === null) return null;
  if (model.value === "tpm-crb" && version.value !== "2.0")
    return badExtraSpec("hw:tpm_version", version.value, "2.0, because the model is tpm-crb");
  draft.requireOfRoot(model.value === "tpm-crb" ? "COMPUTE_SECURITY_TPM_CRB" : "COMPUTE_SECURITY_TPM_TIS");
  draft.requireOfRoot(version.value === "2.0" ? "COMPUTE_SECURITY_TPM_2_0" : "COMPUTE_SECURITY_TPM_1_2");
  return null;
};
