import { type HostFiles, numberedEntries, type Warn } from "./host-files.ts";
import { parseCount, parseWord } from "./parse-values.ts";

/** The processor as /proc/cpuinfo describes it. These are the flags of the host, not those of its guests. */
export interface CpuModel {
  readonly vendor: string | null;
  readonly model: string | null;
  readonly flags: readonly string[] | null;
}

/** Firmware, TPM and AMD's memory encryption. Null means unknown. */
export interface Platform {
  readonly firmware: {
    readonly kind: "uefi" | "bios or other" | null;
    readonly vendor: string | null;
    readonly version: string | null;
    readonly date: string | null;
  };
  readonly product: { readonly vendor: string | null; readonly name: string | null };
  /** Major versions of the TPMs. The list is empty when the host has none. */
  readonly tpms: readonly { readonly name: string; readonly version: string | null }[] | null;
  readonly sev: SevSupport;
}

export interface SevSupport {
  readonly sev: boolean | null;
  readonly sevEs: boolean | null;
  readonly sevSnp: boolean | null;
  /** Number of guests that may have encrypted memory at the same time. */
  readonly sevGuestsMax: number | null;
  readonly sevEsGuestsMax: number | null;
}

/** Reads the first processor of /proc/cpuinfo, whose field names differ between architectures. */
export function discoverCpuModel(files: HostFiles, warn: Warn): CpuModel {
  const text = files.texts.get("/proc/cpuinfo") ?? "";
  const field = (...names: readonly string[]) => {
    for (const name of names) {
      const value = new RegExp(`^${name}[ \\t]*:[ \\t]*(.*)$`, "m").exec(text)?.[1]?.trim();
      if (value) return value;
    }
    return null;
  };
  const model = field("model name", "cpu model", "cpu", "family", "Processor", "CPU part");
  const flags = field("flags", "Features", "features")?.split(/\s+/) ?? null;
  if (model === null) warn("the model of the CPU is unknown: /proc/cpuinfo does not contain it");
  if (flags === null) warn("the flags of the CPU are unknown: /proc/cpuinfo does not contain them");
  return { vendor: field("vendor_id", "CPU implementer", "vendor"), model, flags };
}

export function discoverPlatform(files: HostFiles, warn: Warn): Platform {
  const dmi = (name: string) => parseWord(files.texts.get(`/sys/class/dmi/id/${name}`));
  const firmwareNames = files.entries.get("/sys/firmware");
  if (firmwareNames === undefined) warn("the kind of firmware is unknown: /sys/firmware cannot be read");
  if (dmi("product_name") === null) warn("the product is unknown: /sys/class/dmi/id/product_name cannot be read");
  const tpms = numberedEntries(files, "/sys/class/tpm", "tpm");
  // A kernel has this directory even without a TPM, unless it was built without TPM support.
  if (tpms === null) warn("TPMs are unknown: /sys/class/tpm cannot be read");
  return {
    firmware: {
      kind: firmwareNames === undefined ? null : firmwareNames.includes("efi") ? "uefi" : "bios or other",
      ...{ vendor: dmi("bios_vendor"), version: dmi("bios_version"), date: dmi("bios_date") },
    },
    product: { vendor: dmi("sys_vendor"), name: dmi("product_name") },
    tpms:
      tpms?.map((number) => ({
        name: `tpm${number}`,
        version: parseWord(files.texts.get(`/sys/class/tpm/tpm${number}/tpm_version_major`)),
      })) ?? null,
    sev: sevSupport(files, warn),
  };
}

/** A host whose module list lacks kvm_amd has no SEV. When the list cannot be read, SEV is unknown. */
function sevSupport(files: HostFiles, warn: Warn): SevSupport {
  const modules = files.entries.get("/sys/module");
  if (modules === undefined) warn("SEV is unknown: /sys/module cannot be read");
  const isLoaded = modules?.includes("kvm_amd");
  const parameter = (name: string) => {
    const text = parseWord(files.texts.get(`/sys/module/kvm_amd/parameters/${name}`));
    if (text === null) return isLoaded === undefined ? null : false;
    return /^[Y1]/i.test(text);
  };
  const capacity = files.texts.get("/sys/fs/cgroup/misc.capacity") ?? "";
  const guests = (name: string) => parseCount(new RegExp(`^${name} (\\d+)$`, "m").exec(capacity)?.[1]);
  return {
    ...{ sev: parameter("sev"), sevEs: parameter("sev_es"), sevSnp: parameter("sev_snp") },
    ...{ sevGuestsMax: guests("sev"), sevEsGuestsMax: guests("sev_es") },
  };
}
