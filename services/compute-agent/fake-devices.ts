import { claimedDevices } from "../../core/pinning/choose-devices.ts";
import type { GuestInterface, ServerVolume } from "../../proto/gen/berth/shared.ts";

import type { PrepareOrder } from "./driver.ts";

/** Interfaces of a guest that pretends: only their ports matter. */
export type FakeInterfaces = readonly Pick<GuestInterface, "portId">[];

export const portsOf = (interfaces: FakeInterfaces): readonly string[] => interfaces.map(({ portId }) => portId);

/** The ids of volumes, sorted. */
export const idsOf = (volumes: readonly ServerVolume[] = []): readonly string[] =>
  volumes.map((one) => one.volumeId).sort();

/** What a new guest has: its volumes, its interfaces, and the devices of its host that its claim names. */
export const devicesOf = ({ server, allocation }: Pick<PrepareOrder, "server" | "allocation">) => ({
  volumes: idsOf(server.volumes),
  interfaces: portsOf(server.ports),
  devices: claimedDevices(allocation),
});
