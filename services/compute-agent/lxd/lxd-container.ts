import type { LxdClient, LxdOperation } from "../../../adapters/lxd/lxd-client.ts";
import { LxdError } from "../../../adapters/lxd/lxd-error.ts";
import { bootId } from "../../../runtime/boot-id.ts";
import { type FoundPower, NotArrivedError } from "../driver.ts";
import { OWN_KEYS } from "./container-of-server.ts";

/** LXD's own description of a container. */
export interface FoundContainer {
  readonly name: string;
  /** `Running`, `Stopped`, `Frozen` and others. */
  readonly status: string;
  readonly config: Readonly<Record<string, string>>;
  readonly devices: ContainerDevices;
  readonly architecture: string;
  readonly ephemeral: boolean;
  readonly profiles: readonly string[];
}

/** A container's devices, as LXD describes them, by their names. */
export type ContainerDevices = Readonly<Record<string, Readonly<Record<string, string>>>>;

export interface ContainerControl {
  /** How long a guest may take to shut down by itself. */
  readonly shutdownMs: number;
  readonly signal: AbortSignal;
}

/** One wait for a guest's own shutdown. A guest that has ignored a signal gets it again. */
const SHUTDOWN_SLICE_SECONDS = 5;
const DESTROY_TRIES = 5;

/** One container, as a guest. All states are LXD's: nothing is remembered here. */
export class LxdContainer {
  readonly #client: LxdClient;
  readonly name: string;

  constructor(client: LxdClient, name: string) {
    this.#client = client;
    this.name = name;
  }

  /** Resolves with null when LXD has no such container. */
  async find(): Promise<FoundContainer | null> {
    try {
      return (await this.#client.call(this.#path())) as FoundContainer;
    } catch (error) {
      if (error instanceof LxdError && error.code === "not-found") return null;
      throw error;
    }
  }

  /**
   * The container, once LXD has ended what it was told before. An earlier call may have settled without that, because its answer was lost: then
   * a late start could let the guest run after its server has gone elsewhere.
   */
  async #atRest(signal: AbortSignal): Promise<FoundContainer> {
    await this.settle(signal);
    return this.existing();
  }

  async existing(): Promise<FoundContainer> {
    const found = await this.find();
    if (found === null) throw new LxdError("not-found", "there is no such guest");
    return found;
  }

  /**
   * Lets the guest run. The configuration is written first, so that it never says of a running guest that it has never run.
   */
  async start(signal: AbortSignal): Promise<void> {
    const { status, config } = await this.#atRest(signal);
    if (status === "Running") {
      if (config[OWN_KEYS.runsIn] !== bootId()) await this.change({ [OWN_KEYS.runsIn]: bootId() });
      return;
    }
    if (status === "Frozen") return this.#setState("unfreeze", { signal });
    if (config[OWN_KEYS.receives] !== undefined)
      throw new NotArrivedError("the disk of the guest has not arrived on this host");
    const over = { [OWN_KEYS.handedTo]: "", [OWN_KEYS.received]: "", [OWN_KEYS.listens]: "" };
    await this.change({ [OWN_KEYS.hasRun]: "true", [OWN_KEYS.runsIn]: bootId(), ...over });
    try {
      await this.#setState("start", { signal });
    } catch (error) {
      // Otherwise the guest would look like one that stopped by itself. It may run although its start seems to have failed.
      const found = await this.find().catch(() => null);
      if (found?.status === "Stopped") await this.change({ [OWN_KEYS.runsIn]: "" }).catch(() => undefined);
      throw error;
    }
  }

  /** Stops the guest: it is asked to shut down, unless `force`, and after `shutdownMs` it is killed. */
  async stop({ shutdownMs, signal }: ContainerControl, { force = false } = {}): Promise<void> {
    const { status, config } = await this.#atRest(signal);
    // This is recorded before the guest ends, so that a guest that is then found stopped counts as stopped by order.
    if (config[OWN_KEYS.runsIn] !== undefined) await this.change({ [OWN_KEYS.runsIn]: "" });
    if (status === "Stopped") return;
    if (!force && status === "Running" && (await this.#shutDown(shutdownMs, signal))) return;
    await this.#setState("stop", { force: true, signal });
  }

  async pause(signal: AbortSignal): Promise<void> {
    const { status } = await this.#atRest(signal);
    if (status === "Frozen") return;
    if (status !== "Running") throw new LxdError("refused", `the guest does not run (${status})`);
    await this.#setState("freeze", { signal });
  }

  async unpause(signal: AbortSignal): Promise<void> {
    const { status } = await this.#atRest(signal);
    if (status === "Running") return;
    if (status !== "Frozen") throw new LxdError("refused", `the guest is not paused (${status})`);
    await this.#setState("unfreeze", { signal });
  }

  /** Sets keys of the container's configuration. An empty value removes its key. */
  async change(config: Readonly<Record<string, string>>): Promise<void> {
    await this.#client.call(this.#path(), { method: "PATCH", body: { config } });
  }

  /**
   * Gives the container these interfaces, also while it runs, and no others, unless it `keepsOthers`. LXD leaves those alone that it has already.
   */
  async setInterfaces(interfaces: ContainerDevices, signal: AbortSignal, { keepsOthers = false } = {}): Promise<void> {
    const { architecture, config, devices, ephemeral, profiles } = await this.existing();
    const others = Object.entries(devices).filter(([, { type }]) => type !== "nic");
    const wanted = { ...Object.fromEntries(others), ...interfaces };
    if (keepsOthers && Object.keys(interfaces).every((name) => name in devices)) return;
    const body = {
      architecture,
      config,
      ephemeral,
      profiles,
      devices: keepsOthers ? { ...wanted, ...devices } : wanted,
    };
    await this.#client.run(this.#path(), { method: "PUT", body, signal });
  }

  /**
   * Copies the disk of another container of the same LXD into this one, which was prepared for it. Does nothing if it has the disk already by this order.
   * Throws an LxdError when there is no such container: LXD would make one, which nobody knows of.
   */
  async receiveDisk(source: string, orderId: string, signal: AbortSignal): Promise<void> {
    if ((await this.#readyToReceive(orderId, signal)) === null) return;
    const copy = { type: "copy", source, refresh: true, instance_only: true };
    await this.#client.run("/1.0/instances", { method: "POST", body: { name: this.name, source: copy }, signal });
    await this.endReceiving(orderId);
  }

  /**
   * Lets LXD wait for the disk of a container of another LXD, for this one, which was prepared for it. Resolves with the operation, whose metadata has
   * the secrets of its connections, or with null if the container has the disk already by this order.
   */
  async beginReceiving(orderId: string, signal: AbortSignal): Promise<LxdOperation | null> {
    const found = await this.#readyToReceive(orderId, signal);
    if (found === null) return null;
    const { name, architecture, devices, profiles } = found;
    const source = { type: "migration", mode: "push", refresh: true, live: false, instance_only: true };
    const body = { name, type: "container", architecture, devices, profiles, source };
    return this.#client.begin("/1.0/instances", { method: "POST", body });
  }

  /** Records that the disk is whole. The container could not start before. */
  async endReceiving(orderId: string): Promise<void> {
    await this.change({ [OWN_KEYS.receives]: "", [OWN_KEYS.received]: orderId });
  }

  /** Lets LXD offer the disk of this container, which is stopped, to another LXD (see `beginReceiving`). */
  async beginSending(signal: AbortSignal): Promise<LxdOperation> {
    const { status } = await this.#atRest(signal);
    if (status !== "Stopped")
      throw new LxdError("refused", `the guest must not run while its disk is sent (${status})`);
    const body = { name: this.name, migration: true, live: false, instance_only: true };
    return this.#client.begin(this.#path(), { method: "POST", body });
  }

  /** Null if the disk has arrived by this order. A disk that came by an earlier order is out of date, since its guest may have run since. */
  async #readyToReceive(orderId: string, signal: AbortSignal): Promise<FoundContainer | null> {
    const found = await this.#atRest(signal);
    const { [OWN_KEYS.receives]: receives, [OWN_KEYS.received]: received, [OWN_KEYS.hasRun]: hasRun } = found.config;
    if (received === orderId && receives === undefined) return null;
    if (hasRun !== undefined || (receives === undefined && received === undefined))
      throw new LxdError("refused", "the guest at the destination does not wait for a disk");
    if (receives === undefined) await this.change({ [OWN_KEYS.receives]: "disk" });
    return found;
  }

  /** Removes the container and its disk, even while it is being built. Does nothing if there is none. */
  async destroy(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      await this.settle();
      const found = await this.find();
      if (found === null) return;
      try {
        if (found.status !== "Stopped") await this.#setState("stop", { force: true });
        await this.#client.run(this.#path(), { method: "DELETE" });
        return;
      } catch (error) {
        // Another operation may have begun meanwhile, and the container may be gone.
        if (!(error instanceof LxdError) || error.code === "unavailable" || tries === DESTROY_TRIES) throw error;
      }
    }
  }

  /** Waits until LXD has ended what it is doing to the container. A raised signal calls it off, as far as LXD can. */
  async settle(signal?: AbortSignal): Promise<void> {
    const byState = (await this.#client.call("/1.0/operations?recursion=1")) as Readonly<
      Record<string, readonly LxdOperation[]>
    >;
    const own = Object.values(byState)
      .flat()
      .filter((operation) => operation.status_code < 200 && isAbout(operation, this.name));
    // The outcome of these operations does not matter here.
    await Promise.allSettled(own.map((operation) => this.#client.waitFor(operation, signal)));
    signal?.throwIfAborted();
  }

  /** Resolves with whether the guest has shut down by itself. */
  async #shutDown(shutdownMs: number, signal: AbortSignal): Promise<boolean> {
    for (let leftSeconds = Math.ceil(shutdownMs / 1_000); leftSeconds > 0; leftSeconds -= SHUTDOWN_SLICE_SECONDS) {
      const timeout = Math.min(leftSeconds, SHUTDOWN_SLICE_SECONDS);
      try {
        await this.#setState("stop", { timeout, signal });
        return true;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof LxdError) || error.code === "unavailable") throw error;
        if ((await this.existing()).status === "Stopped") return true;
      }
    }
    return false;
  }

  async #setState(
    action: "start" | "stop" | "freeze" | "unfreeze",
    { force = false, timeout = -1, signal }: { force?: boolean; timeout?: number; signal?: AbortSignal },
  ): Promise<void> {
    const body = { action, force, timeout };
    await this.#client.run(`${this.#path()}/state`, { method: "PUT", body, signal });
  }

  #path(): string {
    return `/1.0/instances/${this.name}`;
  }
}

const isAbout = ({ resources }: LxdOperation, name: string): boolean =>
  Object.values(resources ?? {}).some((paths) => paths.some((path) => path.split("/").includes(name)));

/**
 * A guest that never ran here counts as stopped, and so does one that was handed over: another host may have it. LXD does not say whether a guest was shut down or has
 * crashed.
 */
export function powerOfContainer({ status, config }: FoundContainer): FoundPower {
  switch (status) {
    case "Running":
      return "running";
    case "Frozen":
      return "paused";
    case "Stopped": {
      const { [OWN_KEYS.runsIn]: runsIn, [OWN_KEYS.handedTo]: handedTo } = config;
      if (runsIn === bootId()) return "shut-down";
      return runsIn === undefined || handedTo !== undefined ? "stopped" : "stopped-with-host";
    }
    default:
      return "unknown";
  }
}
