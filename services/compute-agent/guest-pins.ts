import { chooseDevices, claimedDevices } from "../../core/pinning/choose-devices.ts";
import { chooseHostCpus } from "../../core/pinning/choose-host-cpus.ts";
import { connectPorts, directPorts } from "../../core/pinning/direct-ports.ts";
import { type GuestNeeds, guestNeedsOf } from "../../core/pinning/guest-needs.ts";
import { type GuestPinning, isUnpinned } from "../../core/pinning/guest-pinning.ts";
import { deviceName, type HostDevice, type MdevSource } from "../../core/pinning/host-device.ts";
import type { MachineLayout } from "../../core/pinning/machine-layout.ts";
import { derivedProviderUuid } from "../../runtime/derived-provider-uuid.ts";
import { macOf } from "../../runtime/mac-of.ts";
import type { PrepareOrder } from "./driver.ts";
import { messageOf } from "./message-of.ts";

/** A guest that exists or is being built, with its dedicated CPUs and devices. */
export interface CpuHolder {
  readonly host: string;
  readonly serverUuid: string;
  readonly held: readonly number[];
  /** None if absent. */
  readonly devices?: readonly HostDevice[] | undefined;
}

/**
 * Gives guests their CPUs, memory and devices of a host. The choices are stored only in the driver's records of its guests, so an agent that restarts finds them
 * there. This object keeps a choice only until the driver has recorded it.
 */
export class GuestPins {
  readonly #layoutOf: (host: string) => MachineLayout | null;
  readonly #recorded: () => Promise<readonly CpuHolder[]>;
  readonly #existing: (source: MdevSource) => readonly string[];
  readonly #unrecorded = new Set<CpuHolder>();
  #turn: Promise<unknown> = Promise.resolve();

  /** `recorded` reads the CPUs and devices of all guests that exist. It rejects when those of one guest cannot be read, because the guest may have any. `existing` lists the mediated devices that the host has now. */
  constructor(options: {
    readonly layoutOf: ((host: string) => MachineLayout | null) | undefined;
    readonly recorded: () => Promise<readonly CpuHolder[]>;
    readonly existing?: ((source: MdevSource) => readonly string[]) | undefined;
  }) {
    this.#layoutOf = options.layoutOf ?? (() => null);
    this.#recorded = options.recorded;
    this.#existing = options.existing ?? (() => []);
  }

  /**
   * Calls `build` with the CPUs, the memory and the devices that are chosen for the guest, or with undefined when it may use all CPUs and memory and claims no
   * device. Until that settles, no other guest gets these CPUs and devices; then the driver's record of the guest must name them. Rejects when the host cannot give what the guest
   * needs. Another host may.
   */
  async pinned<Built>(
    order: PrepareOrder,
    build: (pinning: GuestPinning | undefined) => Promise<Built>,
  ): Promise<Built> {
    const needs = guestNeedsOf(order.server, order.allocation);
    if (needs.kind === "refused") throw new Error(needs.reason);
    const isDedicated = needs.extra.count > 0 || needs.vcpus.some((vcpu) => vcpu.isDedicated);
    const claimed = claimedDevices(order.allocation, this.#layoutOf(order.host));
    if (!isDedicated && claimed.length === 0) return build(this.#choose(order, needs, []));
    const { pinning, holder } = await this.#inTurn(() => this.#hold(order, needs));
    try {
      return await build(pinning);
    } finally {
      this.#unrecorded.delete(holder);
    }
  }

  /**
   * Calls `onStray` for each guest that has CPUs for itself which are not in the host's dedicated set, since the set has changed. They may be shared CPUs
   * now. Nova's agent does not start then; here the guests go on. Guests whose record cannot be read are left out.
   */
  async findStrays(onStray: (guest: CpuHolder) => void): Promise<void> {
    const recorded = await this.#recorded().catch(() => []);
    for (const { host, serverUuid, held } of recorded) {
      const places = this.#layoutOf(host)?.places;
      if (places === undefined) continue;
      const dedicated = new Set(places.flatMap((place) => place.dedicated));
      const outside = held.filter((cpu) => !dedicated.has(cpu));
      if (outside.length > 0) onStray({ host, serverUuid, held: outside });
    }
  }

  async #hold(order: PrepareOrder, needs: GuestNeeds) {
    // A guest may be recorded, and then forgotten here, after the records have been read.
    const before = [...this.#unrecorded];
    const recorded = await this.#recorded().catch((error: unknown) => {
      throw new Error(`the dedicated CPUs and devices that are free are unknown, because ${messageOf(error)}`, {
        cause: error,
      });
    });
    const pinning = this.#choose(order, needs, [...before, ...recorded]);
    const { host, serverUuid } = order;
    const holder: CpuHolder = { host, serverUuid, held: pinning?.held ?? [], devices: pinning?.devices };
    this.#unrecorded.add(holder);
    return { pinning, holder };
  }

  #choose(
    { host, serverUuid, attemptId, server, allocation, movedFrom }: PrepareOrder,
    needs: GuestNeeds,
    holders: readonly CpuHolder[],
  ): GuestPinning | undefined {
    const here = holders.filter((one) => one.host === host);
    const own = here.filter((one) => one.serverUuid === serverUuid);
    const others = here.filter((one) => one.serverUuid !== serverUuid);
    const layout = this.#layoutOf(host);
    const cpusOf = (all: readonly CpuHolder[]) => new Set(all.flatMap(({ held }) => held));
    const chosen = chooseHostCpus(needs, { layout, taken: cpusOf(others), own: cpusOf(own) });
    if (chosen.kind === "refused") throw new Error(chosen.reason);
    const devicesOf = (all: readonly CpuHolder[]) => all.flatMap(({ devices = [] }) => devices);
    const found = chooseDevices(claimedDevices(allocation, layout), {
      ...{ layout, taken: new Set(devicesOf(others).map(deviceName)), own: devicesOf(own), existing: this.#existing },
      newUuid: (index) => derivedProviderUuid(`device ${index} of ${host} ${attemptId}`),
    });
    if (found.kind === "refused") throw new Error(found.reason);
    const direct = directPorts(server, allocation, { macOf, isNew: movedFrom === null });
    if (direct.kind === "refused") throw new Error(direct.reason);
    const connected = connectPorts(found.devices, direct.ports, { layout, own: devicesOf(own) });
    if (connected.kind === "refused") throw new Error(connected.reason);
    const { devices } = connected;
    const pinning = devices.length === 0 ? chosen.pinning : { ...chosen.pinning, devices };
    return isUnpinned(pinning) ? undefined : pinning;
  }

  /** Choices are made one after the other, so that each knows all that were made before. */
  #inTurn<Result>(choose: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(choose);
    this.#turn = result.catch(() => undefined);
    return result;
  }
}
