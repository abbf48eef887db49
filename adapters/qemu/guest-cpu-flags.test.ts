import { describe, expect, test } from "vitest";
import { cpuTraits } from "../../core/discovery/cpu-traits.ts";
import { whyNoQemu } from "../../test/rigs/qemu-guests.ts";
import { guestCpuFlags } from "./guest-cpu-flags.ts";

const QEMU = "qemu-system-x86_64";
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(
  `the CPU flags of guests, by QEMU's own word${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    const traits = (model: string) => cpuTraits(guestCpuFlags(QEMU, model, "tcg")).traits;

    test("are those of the CPU model with its changes, and not those of the host's CPU", () => {
      expect(traits("qemu64")).toEqual(expect.arrayContaining(["HW_CPU_X86_SSE2", "HW_CPU_X86_SSE3"]));
      expect(traits("qemu64")).not.toContain("HW_CPU_X86_AESNI");
      expect(traits("qemu64,+aes,sse4.2=on")).toEqual(expect.arrayContaining(["HW_CPU_X86_AESNI", "HW_CPU_X86_SSE42"]));
      expect(traits("Westmere,-aes")).not.toContain("HW_CPU_X86_AESNI");
    });

    test("are only those that the accelerator can give: TCG has no AVX512", () => {
      expect(traits("Cascadelake-Server")).toContain("HW_CPU_X86_AVX2");
      expect(traits("Cascadelake-Server")).not.toContain("HW_CPU_X86_AVX512F");
    });

    test("are unknown for a model that QEMU does not have, and the reason is QEMU's", () => {
      expect(() => guestCpuFlags(QEMU, "no-such-model", "tcg")).toThrow(/no-such-model with tcg: .*no-such-model/);
    });
  },
);
