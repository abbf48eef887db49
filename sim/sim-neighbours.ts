import type { SimCinder } from "./sim-cinder.ts";
import type { SimNeutron } from "./sim-neutron.ts";
import type { SimProcess } from "./sim-process.ts";

/** How long the conductors of a cloud with Neutron wait for the ports of a new guest. */
const VIF_PLUGGING_TIMEOUT_MS = 15_000;

/** How long the conductors of a cloud whose servers boot from volumes wait until Cinder has filled one, for each GiB. Some fills take longer. */
const REIMAGE_MS_PER_GIB = 6_000;

/** The other services of a simulated cloud. Each is null in a world without it. */
export interface SimNeighbours {
  readonly cinder: SimCinder | null;
  readonly neutron: SimNeutron | null;
}

/** The clients of a conductor's process. */
export const clientsOfConductor = ({ cinder, neutron }: SimNeighbours, process: SimProcess) => ({
  ...(cinder !== null && { blockStorage: cinder.reachedBy(process) }),
  ...(neutron !== null && { networking: neutron.reachedBy(process).networking }),
});

/** The settings of conductors that depend on the other services. */
export const settingsOfConductor = ({ cinder, neutron }: SimNeighbours) => ({
  ...(neutron !== null && { vifPluggingTimeoutMs: VIF_PLUGGING_TIMEOUT_MS }),
  ...((cinder?.fills ?? null) !== null && { reimageMsPerGib: REIMAGE_MS_PER_GIB }),
});

/** The settings of apis that depend on the other services. */
export const settingsOfApi = ({ cinder, neutron }: SimNeighbours) => ({
  ...(cinder !== null && { volumes: "cinder" as const }),
  ...(neutron !== null && { networks: "neutron" as const }),
});
