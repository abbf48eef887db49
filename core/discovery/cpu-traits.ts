/**
 * The traits of CPU flags, with the flags under libvirt's names. Two flags have two traits each, because old requests name the generic one.
 * Source: CPU_TRAITS_MAPPING of Nova's nova/virt/libvirt/utils.py.
 */
const TRAITS_OF_FLAGS: Readonly<Record<string, readonly string[]>> = {
  "3dnow": ["3DNOW"],
  abm: ["ABM"],
  aes: ["AESNI"],
  "amx-bf16": ["AMXBF16"],
  "amx-int8": ["AMXINT8"],
  "amx-tile": ["AMXTILE"],
  avx: ["AVX"],
  avx2: ["AVX2"],
  avx512bw: ["AVX512BW"],
  avx512cd: ["AVX512CD"],
  avx512dq: ["AVX512DQ"],
  avx512er: ["AVX512ER"],
  avx512f: ["AVX512F"],
  avx512pf: ["AVX512PF"],
  avx512vl: ["AVX512VL"],
  avx512vnni: ["AVX512VNNI"],
  avx512vbmi: ["AVX512VBMI"],
  avx512ifma: ["AVX512IFMA"],
  avx512vbmi2: ["AVX512VBMI2"],
  avx512bitalg: ["AVX512BITALG"],
  vaes: ["AVX512VAES"],
  gfni: ["AVX512GFNI"],
  vpclmulqdq: ["AVX512VPCLMULQDQ"],
  "avx512-vpopcntdq": ["AVX512VPOPCNTDQ"],
  bmi1: ["BMI"],
  bmi2: ["BMI2"],
  pclmuldq: ["CLMUL"],
  f16c: ["F16C"],
  fma: ["FMA3"],
  fma4: ["FMA4"],
  mmx: ["MMX"],
  mpx: ["MPX"],
  "sha-ni": ["SHA"],
  sse: ["SSE"],
  sse2: ["SSE2"],
  sse3: ["SSE3"],
  "sse4.1": ["SSE41"],
  "sse4.2": ["SSE42"],
  sse4a: ["SSE4A"],
  ssse3: ["SSSE3"],
  svm: ["SVM", "AMD_SVM"],
  tbm: ["TBM"],
  vmx: ["VMX", "INTEL_VMX"],
  xop: ["XOP"],
};

/** Names that QEMU and /proc/cpuinfo have for these flags where they differ by more than `_`, `-` and `.`. */
const ALIASES: Readonly<Record<string, string>> = {
  pni: "sse3",
  pclmulqdq: "pclmuldq",
  "avx512-vbmi": "avx512vbmi",
  "avx512-vbmi2": "avx512vbmi2",
  "avx512-vnni": "avx512vnni",
  "avx512-bitalg": "avx512bitalg",
  "avx512-ifma": "avx512ifma",
};

/** Flags by their names without `_`, `-` and `.`, which every source writes in its own way (`sse4_1`, `sse4-1`, `sse4.1`). */
const FLAGS = new Map(
  [...Object.keys(TRAITS_OF_FLAGS).map((flag) => [flag, flag] as const), ...Object.entries(ALIASES)].map(
    ([name, flag]) => [plain(name), flag] as const,
  ),
);

const FLAG_TRAITS: ReadonlySet<string> = new Set(
  Object.values(TRAITS_OF_FLAGS).flatMap((names) => names.map((name) => `HW_CPU_X86_${name}`)),
);

/** Whether the trait stands for a flag of guests' CPUs. */
export const isCpuFlagTrait = (name: string): boolean => FLAG_TRAITS.has(name);

export interface CpuTraits {
  /** Sorted, each once. */
  readonly traits: readonly string[];
  /** Flags that have no trait, as they were given. Most flags have none. */
  readonly unknown: readonly string[];
}

/**
 * The traits of the CPU flags that guests of a host can have. That is for its driver to say: the flags of /proc/cpuinfo are the host's, and its
 * hypervisor may be unable to give them to guests. A flag without a trait is left out, never an error, because new flags appear with each CPU.
 */
export function cpuTraits(flags: Iterable<string>): CpuTraits {
  const traits = new Set<string>();
  const unknown = new Set<string>();
  for (const given of flags) {
    const flag = FLAGS.get(plain(given));
    if (flag === undefined) unknown.add(given);
    else for (const name of TRAITS_OF_FLAGS[flag]!) traits.add(`HW_CPU_X86_${name}`);
  }
  return { traits: [...traits].sort(), unknown: [...unknown].sort() };
}

function plain(flag: string): string {
  return flag.toLowerCase().replace(/[-_.]/g, "");
}
