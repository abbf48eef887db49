import type { ReplacementEnd } from "../../adapters/openstack/replacement-ender.ts";
import type { BlockStorage } from "../../core/stores/block-storage.ts";
import type { Networking } from "../../core/stores/networking.ts";
import { idInCinder } from "../../core/tasks/server-volumes.ts";
import type { PortDevice } from "../../proto/gen/berth/agent.ts";
import type { ServerPort, ServerSpec, ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import { failed, type Need, type Undone } from "./patient-calls.ts";
import { type BindOutcome, type GuestPlace, PortBinder, type PortWish, type Vifs } from "./port-binder.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";
import { type PluggingOutcome, VifPlugging } from "./vif-plugging.ts";
import { type Connections, VolumeConnections } from "./volume-connections.ts";
import { type ReimageNeed, VolumeReimages } from "./volume-reimages.ts";
import { VolumeReplacements } from "./volume-replacements.ts";
import { VolumeSnapshots } from "./volume-snapshots.ts";

/** What only the orders to one host have: how the host reaches the server's volumes in Cinder, and how its ports in Neutron are connected there. */
export interface MetNeeds {
  readonly connections: Connections;
  readonly vifs: Vifs;
}

export const NO_NEEDS: MetNeeds = { connections: new Map(), vifs: new Map() };

export type NeedsOutcome = ({ readonly kind: "met" } & MetNeeds) | Undone;

/** The neighbours' part of a guest: its ports in Neutron and its volumes in Cinder, which its host must have before the guest runs there. */
export class NeighbourNeeds {
  readonly #ports: PortBinder;
  readonly #volumes: VolumeConnections;
  readonly #plugging: VifPlugging;
  readonly #replacements: VolumeReplacements;
  readonly #reimages: VolumeReimages;
  readonly #snapshots: VolumeSnapshots;

  constructor(
    deps: {
      readonly networking?: Networking;
      readonly blockStorage?: BlockStorage | undefined;
      readonly store: Pick<ConductorStore, "holdsTask" | "claimed" | "pluggedPorts">;
      readonly clock: Clock;
    },
    settings: Pick<
      ConductorSettings,
      | "portBindTimeoutMs"
      | "volumeConnectTimeoutMs"
      | "volumeEndPauseMs"
      | "reimageMsPerGib"
      | "vifPluggingTimeoutMs"
      | "vifPluggingIsFatal"
      | "liveMigrationAwaitsVifs"
    >,
  ) {
    this.#ports = new PortBinder({ ...deps, networking: deps.networking ?? null }, settings);
    this.#plugging = new VifPlugging({ ...deps, networking: deps.networking ?? null }, settings);
    const storage = deps.blockStorage ?? null;
    this.#volumes = new VolumeConnections({ ...deps, storage }, settings);
    this.#replacements = new VolumeReplacements({ ...deps, storage }, settings);
    this.#reimages = new VolumeReimages({ ...deps, storage }, settings);
    this.#snapshots = new VolumeSnapshots({ ...deps, storage }, settings);
  }

  /**
   * Binds the server's ports to the host, or does with them what `wish` says, and connects the volumes to it. Null if neither is needed. The promise does
   * not reject because of a neighbour.
   */
  meet(
    server: Pick<ServerSpec, "uuid" | "portRequests"> & {
      readonly ports: ServerSpec["ports"];
      readonly volumes: readonly ServerVolume[];
    },
    place: GuestPlace,
    need: Need,
    wish: PortWish = {},
  ): Promise<NeedsOutcome> | null {
    const connecting = this.#volumes.connect(server.uuid, server.volumes, { ...need, host: place.host });
    const binding = this.#ports.bind(server, place, need, wish);
    return connecting === null && binding === null ? null : both(connecting, binding);
  }

  /** Tells Neutron which functions of the host connect the ports of a prepared guest, and waits until its interfaces are connected to their networks. Null if neither is needed. */
  connected(
    server: ServerSpec,
    place: GuestPlace,
    devices: readonly PortDevice[],
    need: Need,
  ): Promise<PluggingOutcome> | null {
    const telling = devices.length === 0 ? null : this.#ports.bind(server, place, need, { devices });
    return telling === null
      ? this.plugged(server, place.host, need.isWanted)
      : this.#toldAndPlugged(telling, server, place.host, need);
  }

  async #toldAndPlugged(
    telling: Promise<BindOutcome>,
    server: ServerSpec,
    host: string,
    { isWanted }: Need,
  ): Promise<PluggingOutcome> {
    const told = await telling;
    if (told.kind !== "bound") return told;
    return (await this.plugged(server, host, isWanted)) ?? { kind: "plugged" };
  }

  /**
   * Binds the ports of a server at rest to its host, and deletes their bindings to others. `isHome` asks the cell's database whether this still is its
   * host. Neutron is asked once. Null if the server has no ports in Neutron.
   */
  bindHome(
    server: Pick<ServerSpec, "uuid" | "ports" | "portRequests">,
    place: GuestPlace,
    isHome: () => Promise<boolean>,
  ): ReturnType<PortBinder["bind"]> {
    const need = { isWanted: () => true, isUrgent: true, tenure: isHome };
    return this.#ports.bind(server, place, need, { step: "return" });
  }

  /** See `PortBinder.allocationsOf`. */
  allocationsOf(places: Parameters<PortBinder["allocationsOf"]>[0]): ReturnType<PortBinder["allocationsOf"]> {
    return this.#ports.allocationsOf(places);
  }

  /** Tells Cinder how the replacement of a volume has ended. Null if the volume is not in Cinder. */
  endReplacement(
    serverUuid: string,
    volume: ServerVolume,
    end: ReplacementEnd,
    need: Need,
  ): Promise<NeedsOutcome> | null {
    return metBy(this.#replacements.end(serverUuid, volume, end, need));
  }

  /** Asks Cinder whether the volume may still be replaced. Null if the volume is not in Cinder. */
  confirmReplacement(volume: ServerVolume, need: Need): Promise<NeedsOutcome> | null {
    return metBy(this.#replacements.confirm(volume, need));
  }

  /** Lets Cinder fill the server's boot volume with the image that the volume names. Null if the volume is not in Cinder. */
  reimage(serverUuid: string, volume: ServerVolume, need: ReimageNeed): Promise<NeedsOutcome> | null {
    return metBy(this.#reimages.reimage(serverUuid, volume, need));
  }

  /** Asks Cinder whether it still waits for the host's part in a snapshot, and which file of the volume it names to that host. */
  async confirmSnapshot(
    of: Parameters<VolumeSnapshots["confirm"]>[0],
    need: Need & { readonly host: string },
  ): Promise<NeedsOutcome> {
    const confirmed = await this.#snapshots.confirm(of, need);
    if (confirmed.kind !== "ended") return confirmed;
    const connected = await this.#volumes.connect(of.serverUuid, [of.volume], need);
    if (connected?.kind === "connected") return { kind: "met", ...NO_NEEDS, connections: connected.connections };
    return connected ?? failed("the volume is not in Cinder", true);
  }

  /** Tells Cinder that the host has done its part in a snapshot, or that it has not. */
  async endSnapshot(
    end: "announce" | "deny",
    of: Parameters<VolumeSnapshots["confirm"]>[0],
    need: Need,
  ): Promise<NeedsOutcome> {
    const ended = await this.#snapshots[end](of, need);
    return ended.kind === "ended" ? { kind: "met", ...NO_NEEDS } : ended;
  }

  /** Waits until the interfaces of a prepared guest are connected to their networks. Null if there is nothing to wait for. */
  plugged(server: ServerSpec, host: string, isWanted: () => boolean): ReturnType<VifPlugging["wait"]> {
    return this.#plugging.wait(server, host, isWanted);
  }

  /** Waits until these ports are connected at the destination of a live migration. Null if there is nothing to wait for. */
  pluggedAhead(
    portIds: readonly string[],
    place: GuestPlace,
    isWanted: () => boolean,
  ): ReturnType<VifPlugging["waitAhead"]> {
    return this.#plugging.waitAhead(portIds, place, isWanted);
  }
}

const metBy = (ending: ReturnType<VolumeReplacements["end"]>): Promise<NeedsOutcome> | null =>
  ending?.then((outcome) => (outcome.kind === "ended" ? { kind: "met", ...NO_NEEDS } : outcome)) ?? null;

async function both(
  connecting: ReturnType<VolumeConnections["connect"]>,
  binding: ReturnType<PortBinder["bind"]>,
): Promise<NeedsOutcome> {
  const [connected, bound] = await Promise.all([connecting, binding]);
  if (connected !== null && connected.kind !== "connected") return connected;
  if (bound !== null && bound.kind !== "bound") return bound;
  return {
    kind: "met",
    connections: connected?.connections ?? NO_NEEDS.connections,
    vifs: bound?.vifs ?? NO_NEEDS.vifs,
  };
}

/** The server as an order to the host has it. */
export function withNeeds(server: ServerSpec, { connections, vifs }: MetNeeds): ServerSpec {
  if (connections.size === 0 && vifs.size === 0) return server;
  return {
    ...server,
    ports: withVifs(server.ports, vifs),
    volumes: connections.size === 0 ? server.volumes : server.volumes.map((one) => withConnection(one, connections)),
  };
}

export const withVifs = (ports: readonly ServerPort[], vifs: Vifs): ServerPort[] =>
  ports.map((port) => ({ ...port, vif: vifs.get(port.portId) }));

export const withConnection = (volume: ServerVolume, connections: Connections): ServerVolume => ({
  ...volume,
  connection: connections.get(idInCinder(volume)) ?? "",
});
