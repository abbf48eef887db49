import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { cpuTraits } from "./cpu-traits.ts";

/** The 44 flags of Nova's table, under libvirt's names. */
const NOVAS_FLAGS =
  "3dnow abm aes amx-bf16 amx-int8 amx-tile avx avx2 avx512bw avx512cd avx512dq avx512er avx512f avx512pf avx512vl avx512vnni avx512vbmi avx512ifma avx512vbmi2 avx512bitalg vaes gfni vpclmulqdq avx512-vpopcntdq bmi1 bmi2 pclmuldq f16c fma fma4 mmx mpx sha-ni sse sse2 sse3 sse4.1 sse4.2 sse4a ssse3 svm tbm vmx xop".split(
    " ",
  );

test("each flag of Nova's table has its traits, which are standard names of every cell", () => {
  expect(NOVAS_FLAGS).toHaveLength(44);
  const { traits, unknown } = cpuTraits(NOVAS_FLAGS);
  expect([traits.length, unknown]).toEqual([46, []]);
  const names = new URL("../../adapters/postgres/schema/cell/migrations/0001-baseline.sql", import.meta.url);
  const standard = new Set(readFileSync(names, "utf8").match(/(?<=')HW_CPU_[A-Z0-9_]+(?=')/g));
  expect(traits.filter((name) => !standard.has(name))).toEqual([]);
});

test.each([
  ["sse4_1", "HW_CPU_X86_SSE41"],
  ["sse4-1", "HW_CPU_X86_SSE41"],
  ["pni", "HW_CPU_X86_SSE3"],
  ["pclmulqdq", "HW_CPU_X86_CLMUL"],
  ["sha_ni", "HW_CPU_X86_SHA"],
  ["avx512_vpopcntdq", "HW_CPU_X86_AVX512VPOPCNTDQ"],
  ["avx512_vnni", "HW_CPU_X86_AVX512VNNI"],
  ["AES", "HW_CPU_X86_AESNI"],
])("%s is a name of a flag with the trait %s", (flag, trait) => {
  expect(cpuTraits([flag])).toEqual({ traits: [trait], unknown: [] });
});

test("virtualization has an old trait and one of its vendor", () => {
  expect(cpuTraits(["svm", "vmx"]).traits).toEqual([
    "HW_CPU_X86_AMD_SVM",
    "HW_CPU_X86_INTEL_VMX",
    "HW_CPU_X86_SVM",
    "HW_CPU_X86_VMX",
  ]);
});

test("flags without a trait are listed, and are not an error", () => {
  expect(cpuTraits(["fpu", "avx2", "flag-of-the-next-cpu", "fpu"])).toEqual({
    traits: ["HW_CPU_X86_AVX2"],
    unknown: ["flag-of-the-next-cpu", "fpu"],
  });
});
