import type { HostConfig } from "../services/compute-agent/host-config.ts";

/** Makes hosts of several sizes. Some fail now and then, and a few always do. */
export function drawSimHosts(count: number, random: () => number): HostConfig[] {
  return Array.from({ length: count }, (_, index) => {
    const vcpus = [2, 4, 8, 16][Math.floor(random() * 4)]!;
    return {
      name: `host-${index + 1}`,
      inventories: { VCPU: { total: vcpus }, MEMORY_MB: { total: vcpus * 2_048 }, DISK_GB: { total: vcpus * 20 } },
      fake: {
        duration_ms: 20 + Math.floor(random() * 2_000),
        hand_off_ms: Math.floor(random() * 1_000),
        ...habitOf(random()),
      },
    };
  });
}

function habitOf(share: number): HostConfig["fake"] {
  if (share < 0.05) return { outcome: "reschedule" };
  if (share < 0.25) return { outcome: "reschedule", probability: 0.4 };
  if (share < 0.3) return { outcome: "lie", first: 2 };
  if (share < 0.33) return { outcome: "crash", first: 1 };
  if (share < 0.36) return { outcome: "abort", probability: 0.3 };
  if (share < 0.4) return { destroy_failures: 2 };
  if (share < 0.44) return { hand_off_failures: 1 };
  if (share < 0.48) return { start_failures: 1 };
  if (share < 0.52) return { power_failures: 1 };
  return {};
}
