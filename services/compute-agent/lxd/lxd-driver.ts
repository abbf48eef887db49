import { join } from "node:path";
import { copyContainer } from "../../../adapters/lxd/copy-container.ts";
import { LxdClient } from "../../../adapters/lxd/lxd-client.ts";
import { LxdError } from "../../../adapters/lxd/lxd-error.ts";
import { LxdEvents } from "../../../adapters/lxd/lxd-events.ts";
import { LxdImages, type UsableImage } from "../../../adapters/lxd/lxd-images.ts";
import type { PowerVerb } from "../../../core/agent/power-verbs.ts";
import type { MachineLayout } from "../../../core/pinning/machine-layout.ts";
import type { GuestInterface } from "../../../proto/gen/berth/shared.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import { readLogEnd } from "../../../runtime/read-log-end.ts";
import { SnapshotStore } from "../../../runtime/snapshot-store.ts";
import { callDriver } from "../call-driver.ts";
import {
  type Driver,
  type DriverCapability,
  type FoundPower,
  type HandOffOrder,
  type HostedGuest,
  type KeptState,
  movesMemory,
  NO_VOLUME_CHANGES,
  NO_VOLUMES,
  type PrepareControl,
  type PrepareOrder,
  type PrepareOutcome,
} from "../driver.ts";
import { type CpuHolder, GuestPins } from "../guest-pins.ts";
import type { GuestName } from "../journal.ts";
import { messageOf } from "../message-of.ts";
import { formatContainerAddress, TAKES_NO_DISK } from "./container-address.ts";
import {
  type ContainerConfig,
  type ContainerDefaults,
  containerName,
  containerOf,
  expectedLxdImageOf,
  interfaceDevices,
  OWN_KEYS,
} from "./container-of-server.ts";
import { containersOn, cpuHolders, hostedContainers } from "./containers-of-guests.ts";
import { DiskReceivers } from "./disk-receivers.ts";
import { handOverContainer, lxdFingerprint } from "./hand-over-container.ts";
import { type ContainerControl, LxdContainer, powerOfContainer } from "./lxd-container.ts";

export interface LxdDriverOptions extends ContainerDefaults {
  readonly clock: Clock;
  readonly socketPath: string;
  /** LXD's log directory. */
  readonly logsPath: string;
  /** The directory in which images are found under their ids. */
  readonly imagesPath: string;
  /** The address of this machine at which the disks of containers arrive that move here from another LXD. */
  readonly inboundAddress: string;
  /** How long a guest may take to shut down by itself. */
  readonly shutdownMs: number;
  /** The CPUs behind a host's resource providers, or null when they are unknown. Without it they are unknown for every host. */
  readonly layoutOf?: (host: string) => MachineLayout | null;
  /** Called at the start for each guest with CPUs that are no longer in its host's dedicated set. */
  readonly onStrayCpus?: (guest: CpuHolder) => void;
  /** Called for each guest whose state cannot be found out. */
  readonly onUnknown?: (guest: GuestName, error: unknown) => void;
  /** Called for each guest that is rebooted without the interfaces that it should have got. */
  readonly onWithoutInterfaces?: (guest: GuestName, error: unknown) => void;
}

/** A container that LXD does not answer for must not hide the others, so this is shorter than the agent's own deadline for a look at all of them. */
const LOOK_MS = 4_000;
/** A hard reboot must have time left to start the container. */
const INTERFACES_MS = 15_000;
const NO_LIVE_MOVE = "containers cannot be moved while they run: stop the server and migrate it";
/** Only these moves continue with the source's disk. Every other one begins with the image. */
const WITH_DISK: readonly string[] = ["resize", "migrate"];

/**
 * A driver whose guests are system containers of LXD. They outlive the agent, and LXD's database contains everything that is known about
 * them.
 */
export class LxdDriver implements Driver {
  /** Containers can be moved only while they do not run, and their memory cannot be saved. */
  readonly capabilities: ReadonlySet<DriverCapability> = new Set(["snapshot", "interfaces"] as const);
  readonly traits = ["COMPUTE_NODE"];
  readonly #options: LxdDriverOptions;
  readonly #client: LxdClient;
  readonly #images: LxdImages;
  readonly #snapshots: SnapshotStore;
  readonly #events: LxdEvents;
  readonly #pins: GuestPins;
  readonly #receivers: DiskReceivers;
  /** The guests that were named to this driver, by their containers. */
  readonly #known = new Map<string, GuestName>();
  #onChanged: (guest: GuestName) => void = () => undefined;

  constructor(options: LxdDriverOptions) {
    this.#options = options;
    const { socketPath, clock } = options;
    this.#client = new LxdClient(socketPath);
    this.#images = new LxdImages(this.#client, options.imagesPath);
    this.#snapshots = new SnapshotStore(options.imagesPath, ".tar.gz");
    this.#receivers = new DiskReceivers(this.#client, { socketPath, host: options.inboundAddress });
    this.#pins = new GuestPins({ layoutOf: options.layoutOf, recorded: () => cpuHolders(this.#client) });
    this.#events = new LxdEvents({
      ...{ socketPath, clock },
      onEvent: (container) => this.#tell(container),
      onConnected: () => {
        for (const container of this.#known.keys()) this.#tell(container);
      },
    });
  }

  watch(onChanged: (guest: GuestName) => void): void {
    this.#onChanged = onChanged;
  }

  async adopt(guests: readonly (GuestName & { readonly state: KeptState })[]): Promise<void> {
    for (const guest of guests) this.#of(guest);
    this.#events.open();
    // A guest that cannot be looked at now must not keep the agent from the others: its next order waits once more.
    const settled = async (guest: GuestName) => {
      try {
        const container = this.#of(guest);
        await container.settle();
        const found = await container.find();
        if (found !== null) await this.#receivers.reopen(found);
      } catch (error) {
        this.#options.onUnknown?.(guest, error);
      }
    };
    await Promise.all(guests.map(settled));
    await this.#pins.findStrays((guest) => this.#options.onStrayCpus?.(guest));
  }

  powersOf(guests: readonly GuestName[]): Promise<readonly FoundPower[]> {
    return Promise.all(
      guests.map(async (guest) => {
        try {
          const look = withDeadline(this.#of(guest).find(), LOOK_MS, "the look at a container", this.#options.clock);
          const found = await look;
          return found === null ? "missing" : powerOfContainer(found);
        } catch (error) {
          this.#options.onUnknown?.(guest, error);
          return "unknown";
        }
      }),
    );
  }

  /** The guests of these hosts that really exist, for an auditor. Other hosts may have theirs in the same LXD. */
  guests(hosts: ReadonlySet<string>): Promise<readonly (GuestName & { readonly running: boolean })[]> {
    return containersOn(this.#client, hosts);
  }

  hostedGuests(hosts: ReadonlySet<string>): Promise<readonly HostedGuest[]> {
    return hostedContainers(this.#client, hosts, this.#options.inboundAddress);
  }

  /** Gives up the connections to LXD, for the agent's next process. The guests stay as they are. */
  close(): void {
    this.#events.close();
    this.#receivers.close();
    this.#client.close();
  }

  async prepare(order: PrepareOrder, control: PrepareControl): Promise<PrepareOutcome> {
    const by = order.movedFrom?.by ?? "";
    if (movesMemory(order)) return { kind: "failed", failure: "abort", reason: NO_LIVE_MOVE };
    try {
      const listensAt = await this.#pins.pinned(order, async (pinning) => {
        if (pinning?.devices !== undefined)
          throw new Error("containers get no devices of their host: take a host with virtual machines for this flavor");
        if (pinning?.pageKib != null) throw new Error("containers have no huge pages");
        const made = withFinalErrors(() => containerOf(order.server, order, { ...this.#options, pinning }));
        if (WITH_DISK.includes(by)) return this.#createWaiting(order, made, control);
        const from = await this.#image(order, control);
        control.signal.throwIfAborted();
        control.onStep("create");
        await this.#images.blamed(from, this.#create(order, from.source, made, control.signal), control.signal);
        return order.movedFrom === null ? null : TAKES_NO_DISK;
      });
      return { kind: "prepared", ...(listensAt !== null && { listensAt }) };
    } catch (error) {
      const isFinal = error instanceof LxdError && error.isFinal;
      return { kind: "failed", failure: isFinal ? "abort" : "reschedule", reason: messageOf(error) };
    }
  }

  async start(guest: GuestName, signal: AbortSignal): Promise<void> {
    const container = this.#of(guest);
    await container.start(signal);
    await this.#receivers.end(container.name);
  }

  async power(
    guest: GuestName,
    verb: PowerVerb,
    signal: AbortSignal,
    interfaces?: readonly GuestInterface[] | null,
  ): Promise<void> {
    const container = this.#of(guest);
    const control: ContainerControl = { shutdownMs: this.#options.shutdownMs, signal };
    switch (verb) {
      case "start":
        return this.start(guest, signal);
      case "stop":
        return container.stop(control);
      case "reboot":
      case "hard-reboot":
        await container.stop(control, { force: verb === "hard-reboot" });
        if (verb === "hard-reboot" && interfaces != null) await this.#align(guest, interfaces, signal);
        return container.start(signal);
      case "pause":
        return container.pause(signal);
      case "unpause":
        return container.unpause(signal);
      case "suspend":
      case "resume":
        throw new LxdError("refused", "the memory of a container cannot be saved");
      case "unrescue":
        return this.rescue();
      case "inject-nmi":
        throw new LxdError("refused", "a container has no kernel of its own that could be interrupted");
      default:
        return verb satisfies never;
    }
  }

  async rescue(): Promise<void> {
    throw new LxdError("refused", "a container cannot be booted from a rescue image");
  }

  async attachVolume(): Promise<void> {
    throw new LxdError("refused", NO_VOLUMES);
  }

  async changeVolume(): Promise<void> {
    throw new LxdError("refused", NO_VOLUME_CHANGES);
  }

  /** Without a bridge containers have no interfaces, whatever ports their servers have. */
  async setInterfaces(guest: GuestName, interfaces: readonly GuestInterface[], signal: AbortSignal): Promise<void> {
    const { bridge } = this.#options;
    const container = this.#of(guest);
    await container.settle(signal);
    if (bridge === null) await container.existing();
    else await container.setInterfaces(interfaceDevices(interfaces, bridge), signal);
  }

  /** An interface of the container in the place of one of these stays. */
  async addInterfaces(guest: GuestName, interfaces: readonly GuestInterface[], signal: AbortSignal): Promise<void> {
    const { bridge } = this.#options;
    const container = this.#of(guest);
    await container.settle(signal);
    if (bridge === null) await container.existing();
    else await container.setInterfaces(interfaceDevices(interfaces, bridge), signal, { keepsOthers: true });
  }

  /** Gives a guest that is about to start its interfaces. It starts all the same when that fails, since it may be needed without them. */
  async #align(guest: GuestName, interfaces: readonly GuestInterface[], signal: AbortSignal): Promise<void> {
    const { clock, onWithoutInterfaces } = this.#options;
    const control = { signal, timeoutMs: INTERFACES_MS, what: "changing a container's interfaces", clock };
    try {
      const set = (raised: AbortSignal) => this.setInterfaces(guest, interfaces, raised);
      await callDriver(set, { ...control, onStuck: () => undefined });
    } catch (error) {
      signal.throwIfAborted();
      onWithoutInterfaces?.(guest, error);
    }
  }

  /** No container has a volume. */
  async detachVolume(): Promise<void> {}

  /** Stops the guest, and copies its disk if the destination waits for it. */
  async handOff(order: HandOffOrder, signal: AbortSignal): Promise<void> {
    if (order.live) throw new LxdError("refused", NO_LIVE_MOVE);
    const { socketPath, shutdownMs } = this.#options;
    await handOverContainer(this.#of(order), order, { client: this.#client, socketPath, shutdownMs, signal });
  }

  /** LXD keeps nothing of the image: the host that boots from it imports its file like every other. */
  async snapshot(guest: GuestName, imageId: string, signal: AbortSignal): Promise<void> {
    const images = this.#snapshots;
    if (await images.has(imageId)) return;
    const container = this.#of(guest);
    await container.settle(signal);
    await container.existing();
    await images.discardAll(imageId);
    const file = await images.nameFor(imageId);
    try {
      await copyContainer(this.#client, { container: container.name, imageId, file, signal });
      await images.publish(file, imageId, signal);
    } catch (error) {
      await images.discard(file);
      throw error;
    }
  }

  /**
   * Reads the file in which LXD logs the console. LXD's API is not used, because each read through it removes the text that it returns
   * while the guest runs. A guest that has not started yet has no log, and so has written nothing.
   */
  async readConsole(guest: GuestName, bytesMax: number): Promise<Uint8Array | null> {
    const container = this.#of(guest);
    if ((await container.find()) === null) return null;
    return readLogEnd(join(this.#options.logsPath, container.name, "console.log"), bytesMax);
  }

  /** The agent never calls it, because the driver does not state the capability. */
  async openConsole(): Promise<never> {
    throw new Error("the consoles of containers cannot be opened");
  }

  hasDisplay(): boolean {
    return false;
  }

  async openDisplay(): Promise<never> {
    throw new Error("containers have no displays");
  }

  /** A container's processes have no vCPUs, of which each could have its CPU. */
  pinningOf(): null {
    return null;
  }

  async measure(): Promise<null> {
    return null;
  }

  async destroy(guest: GuestName): Promise<void> {
    const container = this.#of(guest);
    this.#known.delete(container.name);
    // LXD cannot remove a container while it receives its disk.
    await this.#receivers.end(container.name);
    await container.destroy();
  }

  #image({ server }: PrepareOrder, control: PrepareControl): Promise<UsableImage> {
    control.onStep("image");
    const expected = withFinalErrors(() => expectedLxdImageOf(server));
    return this.#images.usable(expected, control.signal);
  }

  async #create(order: PrepareOrder, source: object, made: ContainerConfig, signal: AbortSignal): Promise<void> {
    const { name } = this.#of(order);
    const body = { name, type: "container", profiles: [], source, ...made };
    await this.#client.run("/1.0/instances", { method: "POST", body, signal });
  }

  /** Creates a container whose disk comes later. Resolves with the address at which it waits for the disk. */
  async #createWaiting(order: PrepareOrder, made: ContainerConfig, control: PrepareControl): Promise<string> {
    const { name } = this.#of(order);
    const lxd = await lxdFingerprint(this.#client);
    control.signal.throwIfAborted();
    control.onStep("create");
    const { port, key, record } = await this.#receivers.open(name);
    const config = { ...made.config, [OWN_KEYS.receives]: "disk", [OWN_KEYS.listens]: record };
    try {
      await this.#create(order, { type: "none" }, { ...made, config }, control.signal);
    } catch (error) {
      await this.#receivers.end(name);
      throw error;
    }
    return formatContainerAddress({ lxd, host: this.#options.inboundAddress, port, key });
  }

  #of({ host, serverUuid, attemptId }: GuestName): LxdContainer {
    const name = containerName({ host, attemptId });
    this.#known.set(name, { host, serverUuid, attemptId });
    return new LxdContainer(this.#client, name);
  }

  #tell(container: string): void {
    const guest = this.#known.get(container);
    if (guest !== undefined) this.#onChanged(guest);
  }
}

/** Errors of `make` are the request's fault: no host could do better, so no alternate is tried. */
function withFinalErrors<Made>(make: () => Made): Made {
  try {
    return make();
  } catch (error) {
    throw new LxdError("image", (error as Error).message, { isFinal: true, cause: error });
  }
}
