/** The reference of the published experiments: the most CPU and GPU that one of their machines has, in thousandths. */
export const BIGGEST_MACHINE = { cpuMilli: 128_000, gpuMilli: 8_000 } as const;
