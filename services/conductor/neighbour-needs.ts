import type { BlockStorage } from "../../core/stores/block-storage.ts";
import type { Networking } from "../../core/stores/networking.ts";
import type { ServerSpec, ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Need, Undone } from "./patient-calls.ts";
import { PortBinder } from "./port-binder.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";
import { VifPlugging } from "./vif-plugging.ts";
import { type Connections, VolumeConnections } from "./volume-connections.ts";

export type NeedsOutcome = { readonly kind: "met"; readonly connections: Connections } | Undone;

/** The neighbours' part of a guest: its ports in Neutron and its volumes in Cinder, which its host must have before the guest runs there. */
export class NeighbourNeeds {
  readonly #ports: PortBinder;
  readonly #volumes: VolumeConnections;
  readonly #plugging: VifPlugging;

  constructor(
    deps: {
      readonly networking?: Networking;
      readonly blockStorage?: BlockStorage | undefined;
      readonly store: Pick<ConductorStore, "holdsTask">;
      readonly clock: Clock;
    },
    settings: Pick<
      ConductorSettings,
      "portBindTimeoutMs" | "volumeConnectTimeoutMs" | "vifPluggingTimeoutMs" | "vifPluggingIsFatal"
    >,
  ) {
    this.#ports = new PortBinder({ ...deps, networking: deps.networking ?? null }, settings);
    this.#plugging = new VifPlugging({ ...deps, networking: deps.networking ?? null }, settings);
    this.#volumes = new VolumeConnections({ ...deps, storage: deps.blockStorage ?? null }, settings);
  }

  /**
   * Binds the server's ports to the host, and connects the volumes to it. Null if neither is needed. The promise does not reject because of a
   * neighbour.
   */
  meet(
    server: Pick<ServerSpec, "uuid"> & {
      readonly ports: ServerSpec["ports"];
      readonly volumes: readonly ServerVolume[];
    },
    host: string,
    need: Need,
  ): Promise<NeedsOutcome> | null {
    const connecting = this.#volumes.connect(server.uuid, server.volumes, { ...need, host });
    const binding = this.#ports.bind(server, host, need);
    return connecting === null && binding === null ? null : both(connecting, binding);
  }

  /** Waits until the interfaces of a prepared guest are connected to their networks. Null if there is nothing to wait for. */
  plugged(server: ServerSpec, host: string, isWanted: () => boolean): ReturnType<VifPlugging["wait"]> {
    return this.#plugging.wait(server, host, isWanted);
  }
}

async function both(
  connecting: ReturnType<VolumeConnections["connect"]>,
  binding: ReturnType<PortBinder["bind"]>,
): Promise<NeedsOutcome> {
  const [connected, bound] = await Promise.all([connecting, binding]);
  if (connected !== null && connected.kind !== "connected") return connected;
  if (bound !== null && bound.kind !== "bound") return bound;
  return { kind: "met", connections: connected?.connections ?? new Map() };
}

/** The server with the connections of its volumes on one host. */
export function withConnections(server: ServerSpec, connections: Connections): ServerSpec {
  return connections.size === 0
    ? server
    : { ...server, volumes: server.volumes.map((volume) => withConnection(volume, connections)) };
}

export const withConnection = (volume: ServerVolume, connections: Connections): ServerVolume => ({
  ...volume,
  connection: connections.get(volume.volumeId) ?? "",
});
