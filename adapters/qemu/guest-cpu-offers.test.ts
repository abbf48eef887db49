import { describe, expect, test } from "vitest";
import { cpuTraits } from "../../core/discovery/cpu-traits.ts";
import { whyNoQemu } from "../../test/rigs/qemu-guests.ts";
import { guestCpuOffers } from "./guest-cpu-offers.ts";

const QEMU = "qemu-system-x86_64";
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(
  `the CPU flags of guests, by QEMU's own word${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    const offers = (...cpuModels: readonly string[]) => guestCpuOffers({ program: QEMU, cpuModels, accel: "tcg" });
    const traits = async (model: string) => cpuTraits((await offers(model))[0]?.flags ?? []).traits;

    test("are those of the CPU model with its changes, and not those of the host's CPU", async () => {
      expect(await traits("qemu64")).toEqual(expect.arrayContaining(["HW_CPU_X86_SSE2", "HW_CPU_X86_SSE3"]));
      expect(await traits("qemu64")).not.toContain("HW_CPU_X86_AESNI");
      expect(await traits("qemu64,+aes,sse4.2=on")).toEqual(
        expect.arrayContaining(["HW_CPU_X86_AESNI", "HW_CPU_X86_SSE42"]),
      );
      expect(await traits("Westmere,-aes")).not.toContain("HW_CPU_X86_AESNI");
    });

    test("are only those that the accelerator can give: TCG has no AVX512", async () => {
      expect(await traits("Cascadelake-Server")).toContain("HW_CPU_X86_AVX2");
      expect(await traits("Cascadelake-Server")).not.toContain("HW_CPU_X86_AVX512F");
    });

    test("tell of several models which flags of them the accelerator cannot give, unless they are switched off", async () => {
      const found = await offers(
        "Westmere",
        "Cascadelake-Server",
        "Westmere,+avx512f,+aes",
        "Cascadelake-Server,-avx512f",
      );
      const [westmere, cascadelake, more, fewer] = found.map(({ missing }) => missing);
      expect(westmere).toEqual([]);
      expect(cascadelake).toContain("avx512f");
      expect(more).toEqual(["avx512f"]);
      expect(fewer).not.toContain("avx512f");
      expect(fewer).toContain("avx512dq");
    });

    test("are unknown for a model that QEMU does not have, and the reason is QEMU's", async () => {
      await expect(offers("qemu64", "no-such-model")).rejects.toThrow(/no-such-model with tcg: .*no-such-model/);
    });
  },
);
