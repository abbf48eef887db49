/** What the published experiments measure by: the most CPU and GPU that a machine of theirs has, in thousandths. */
export const BIGGEST_MACHINE = { cpuMilli: 128_000, gpuMilli: 8_000 } as const;
