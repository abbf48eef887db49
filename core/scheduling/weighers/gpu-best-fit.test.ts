import { expect, test } from "vitest";
import { isGpuClass } from "./gpu-best-fit.ts";

test.each([
  ...["VGPU", "PGPU", "CUSTOM_GPU_MILLI", "CUSTOM_A100_GPU", "CUSTOM_VGPU_BIG"].map((name) => [name, true] as const),
  ...["VGPU_DISPLAY_HEAD", "VCPU", "CUSTOM_GPUS", "CUSTOM_PCI_10DE_2204"].map((name) => [name, false] as const),
])("%s counts GPUs: %s", (name, isOne) => {
  expect(isGpuClass(name)).toBe(isOne);
});
