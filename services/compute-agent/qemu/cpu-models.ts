import { SettingsError } from "../../../runtime/settings.ts";
import type { QemuSettings } from "./qemu-settings.ts";

/** The CPU model of guests for which the settings name none. */
const DEFAULTS = { tcg: "qemu64", kvm: "host" } as const;

type CpuSettings = Pick<QemuSettings, "cpuModel" | "cpuModels" | "cpuModelExtraFlags">;

/**
 * The CPU models of guests as QEMU takes them, in the order of preference, each with the extra flags. Throws a SettingsError if two settings name
 * models.
 */
export function cpuModelsOf(
  { cpuModel, cpuModels, cpuModelExtraFlags }: CpuSettings,
  accel: keyof typeof DEFAULTS,
): readonly [string, ...string[]] {
  refuseTwoLists({ cpuModel, cpuModels });
  const [first = DEFAULTS[accel], ...others] = cpuModels ?? (cpuModel === null ? [] : [cpuModel]);
  const withFlags = (model: string) => [model, ...(cpuModelExtraFlags ?? [])].join(",");
  return [withFlags(first), ...others.map(withFlags)];
}

/** Throws a SettingsError if both the model and the list of models are given. */
export function refuseTwoLists({ cpuModel, cpuModels }: Pick<CpuSettings, "cpuModel" | "cpuModels">): void {
  if (cpuModel !== null && cpuModels !== null)
    throw new SettingsError(
      "BERTH_CPU_MODEL (--cpu-model) and BERTH_CPU_MODELS (--cpu-models) are both given: name all models in --cpu-models, and flags in --cpu-model-extra-flags",
    );
}
