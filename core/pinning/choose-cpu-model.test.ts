import { describe, expect, test } from "vitest";
import { serverSpec } from "../../test/contract/cell-fixtures.ts";
import { type CpuOffer, chooseCpuModel, flagsOfOffers, traitsOfOffers } from "./choose-cpu-model.ts";
import { requiredCpuTraits } from "./required-cpu-traits.ts";

const offer = (cpuModel: string, flags: string, missing = ""): CpuOffer => ({
  cpuModel,
  flags: flags.split(" "),
  missing: missing.split(" ").filter(Boolean),
});
const OLD = offer("Penryn", "sse2 ssse3");
const MIDDLE = offer("Westmere", "sse2 ssse3 sse4.2 aes");
const NEW = offer("Haswell", "sse2 ssse3 sse4.2 aes avx2 fma");
const OFFERS = [OLD, MIDDLE, NEW];
const AES = "HW_CPU_X86_AESNI";
const AVX2 = "HW_CPU_X86_AVX2";

describe("the CPU model of a server", () => {
  test.each([
    [[], "Penryn"],
    [["HW_CPU_X86_SSSE3"], "Penryn"],
    [[AES], "Westmere"],
    [[AES, AVX2], "Haswell"],
  ])("that requires %j is the first one in the list which has that", (required, cpuModel) => {
    expect(chooseCpuModel(OFFERS, required)).toEqual({ kind: "chosen", cpuModel });
  });

  test("is chosen in the order of the list, even if the earlier model has more traits", () => {
    expect(chooseCpuModel([NEW, MIDDLE], [AES])).toEqual({ kind: "chosen", cpuModel: "Haswell" });
  });

  test("is none if no model has all required traits, and the reason names them and the models", () => {
    const chosen = chooseCpuModel([OLD, { ...NEW, missing: ["avx2", "fma"] }], [AVX2]);
    expect(chosen).toEqual({
      kind: "refused",
      reason: `no CPU model of the host has the traits ${AVX2} that the flavor or the image requires; the models are Penryn; Haswell (this host lacks avx2 fma)`,
    });
  });

  test("is not one that the host cannot give, unless the list has no other: then QEMU says why", () => {
    const broken = offer("Haswell", "sse2 aes", "avx2");
    expect(chooseCpuModel([broken, MIDDLE], [])).toEqual({ kind: "chosen", cpuModel: "Westmere" });
    expect(chooseCpuModel([broken], [AES])).toEqual({ kind: "chosen", cpuModel: "Haswell" });
  });
});

test("a host has the traits of all models together, but not those of a model that it cannot give", () => {
  expect(traitsOfOffers(OFFERS)).toEqual(expect.arrayContaining([AES, AVX2, "HW_CPU_X86_SSSE3"]));
  const broken = { ...NEW, missing: ["fma"] };
  expect(flagsOfOffers([OLD, broken])).toEqual(["sse2", "ssse3"]);
  // A single model has always been reported with what the host can give of it.
  expect(traitsOfOffers([broken])).toContain(AVX2);
});

test("the required traits are those of CPU flags in any group of the flavor, and in the image", () => {
  const flavor = {
    ...{ id: "f", name: "f", vcpus: 1, memoryMib: 1, diskGib: 1, ephemeralGib: 0, swapMib: 0 },
    extraSpecs: {
      "trait:HW_CPU_X86_AVX2": "required",
      "trait_a:HW_CPU_X86_VMX": "required",
      "trait:HW_CPU_X86_SVM": "forbidden",
      "trait1:HW_CPU_HYPERTHREADING": "required",
      "trait:CUSTOM_HW_CPU_X86_AESNI": "required",
      "hw:cpu_policy": "required",
    },
  };
  const server = serverSpec(1, { flavor, imageProperties: { "trait:HW_CPU_X86_AESNI": "required", os: "required" } });
  expect(requiredCpuTraits(server)).toEqual([AES, AVX2, "HW_CPU_X86_VMX"]);
  expect(requiredCpuTraits({ ...server, flavor: undefined, imageProperties: {} })).toEqual([]);
});
