import type { HostConfig } from "../services/compute-agent/host-config.ts";
import type { Machine } from "./trace.ts";

export const CPU_CLASS = "CUSTOM_CPU_MILLI";
export const MEMORY_CLASS = "MEMORY_MB";
export const GPU_CLASS = "CUSTOM_GPU_MILLI";
/** Inventory of a GPU provider: one GPU in thousandths. */
export const GPU_TOTAL = 1000;

export function gpuTrait(model: string): string {
  return `CUSTOM_GPU_${model.toUpperCase()}`;
}

/** A machine as a host: CPU and memory on its root provider, each GPU a child of its own. */
export function hostOf(machine: Machine): HostConfig {
  return {
    name: machine.name,
    inventories: { [CPU_CLASS]: { total: machine.cpuMilli }, [MEMORY_CLASS]: { total: machine.memoryMib } },
    children: Array.from({ length: machine.gpus }, (_, index) => ({
      name: `gpu-${index}`,
      inventories: { [GPU_CLASS]: { total: GPU_TOTAL } },
      traits: [gpuTrait(machine.gpuModel)],
    })),
  };
}

/** Distributes the machines kind by kind, so that each cell gets its share of every kind. */
export function dealToCells(machines: readonly Machine[], cells: number): Machine[][] {
  const kindOf = (machine: Machine): string =>
    `${machine.gpuModel} ${machine.gpus} ${machine.cpuMilli} ${machine.memoryMib}`;
  const sorted = machines.toSorted((a, b) => (kindOf(a) < kindOf(b) ? -1 : kindOf(a) > kindOf(b) ? 1 : 0));
  return Array.from({ length: cells }, (_, cell) => sorted.filter((_machine, index) => index % cells === cell));
}
