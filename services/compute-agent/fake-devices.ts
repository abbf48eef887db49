import { runsNow } from "../../core/agent/runs-now.ts";
import { claimedDevices } from "../../core/pinning/choose-devices.ts";
import type { GuestDiagnostics, GuestInterface, ServerVolume } from "../../proto/gen/berth/shared.ts";

import type { FoundPower, PrepareOrder } from "./driver.ts";

/** Interfaces of a guest that pretends: only their ports matter. */
export type FakeInterfaces = readonly Pick<GuestInterface, "portId">[];

export const portsOf = (interfaces: FakeInterfaces): readonly string[] => interfaces.map(({ portId }) => portId);

/** The interfaces of these ports, and those others that are not among them. */
export const allPorts = (present: readonly string[], others: FakeInterfaces): FakeInterfaces =>
  [...new Set([...present, ...portsOf(others)])].map((portId) => ({ portId }));

/** The ids of volumes, sorted. */
export const idsOf = (volumes: readonly ServerVolume[] = []): readonly string[] =>
  volumes.map((one) => one.volumeId).sort();

/** What a new guest has: its volumes, its interfaces, and the devices of its host that its claim names. */
export const devicesOf = ({ server, allocation }: Pick<PrepareOrder, "server" | "allocation">) => ({
  volumes: idsOf(server.volumes),
  interfaces: portsOf(server.ports),
  devices: claimedDevices(allocation),
  vcpus: server.flavor?.vcpus ?? 0,
});

const NO_TRAFFIC = {
  ...{ rxBytes: 0, rxPackets: 0, rxErrors: 0, rxDropped: 0 },
  ...{ txBytes: 0, txPackets: 0, txErrors: 0, txDropped: 0 },
};

/** What a guest that pretends to run has used of its host: a disk, its volumes and its interfaces, but nothing of them. Throws if it does not run. */
export function pretendedDiagnostics(
  guest:
    | {
        readonly power: FoundPower;
        readonly vcpus?: number;
        readonly volumes?: readonly string[];
        readonly interfaces?: readonly string[];
      }
    | undefined,
): GuestDiagnostics {
  if (guest === undefined || !runsNow(guest.power)) throw new Error("the guest does not run");
  const { vcpus = 0, volumes = [], interfaces = [] } = guest;
  const disk = { readBytes: 0, readRequests: 0, writeBytes: 0, writeRequests: 0, errors: 0 };
  return {
    uptimeS: 0,
    vcpuTimesUs: Array.from({ length: vcpus }, () => 0),
    disks: ["local", ...volumes].map(() => disk),
    memoryUsedKib: 0,
    interfaces: interfaces.map((portId) => ({ portId, ...NO_TRAFFIC })),
  };
}
