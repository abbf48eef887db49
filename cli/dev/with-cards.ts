import type { HostConfig } from "../../services/compute-agent/host-config.ts";

/**
 * Gives the first host two NUMA nodes with a graphics card each, so that there is a deeper tree to look at, and VGPUs to ask for
 * (`resources:VGPU=1` in a flavor). Its CPUs, memory and disk stay in the root, so that other servers find it as before.
 */
export function withCards(hosts: readonly HostConfig[]): readonly HostConfig[] {
  const children = [0, 1].map((node) => ({
    ...{ name: `numa${node}`, traits: ["HW_NUMA_ROOT"] },
    children: [{ name: `gpu${node}`, inventories: { VGPU: { total: 4 } } }],
  }));
  return hosts.map((host, index) => (index === 0 ? { ...host, children } : host));
}
