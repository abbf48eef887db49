import type { GuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import { chooseHostCpus } from "../../../core/pinning/choose-host-cpus.ts";
import { guestNeedsOf } from "../../../core/pinning/guest-needs.ts";
import { type GuestPinning, isUnpinned } from "../../../core/pinning/guest-pinning.ts";
import type { MachineLayout } from "../../../core/pinning/machine-layout.ts";
import type { PrepareOrder } from "../driver.ts";
import { messageOf } from "../message-of.ts";

type Holder = Pick<GuestRecord, "host" | "serverUuid" | "pinning">;

/**
 * Gives guests their CPUs and memory of a host. The guests' records are the only memory of it, so that an agent that restarts goes on with the same; a
 * choice is kept here only until its record is written.
 */
export class GuestPins {
  readonly #layoutOf: (host: string) => MachineLayout | null;
  readonly #records: () => readonly GuestRecord[];
  readonly #unrecorded = new Map<string, Holder>();

  /** `records` reads the records of all guests that exist, at once. It throws when one of them cannot be read. */
  constructor(options: {
    readonly layoutOf: (host: string) => MachineLayout | null;
    readonly records: () => readonly GuestRecord[];
  }) {
    this.#layoutOf = options.layoutOf;
    this.#records = options.records;
  }

  /**
   * Calls `build` with the CPUs and the memory that are chosen for the guest, or with undefined when it may use all of them. Until that settles, no other
   * guest gets these CPUs; then the guest's record must name them. Rejects with a QemuError when the host cannot give what the
   * guest needs. Another host may.
   */
  async pinned<Built>(
    order: PrepareOrder,
    build: (pinning: GuestPinning | undefined) => Promise<Built>,
  ): Promise<Built> {
    const pinning = this.#choose(order);
    if (pinning === undefined) return build(undefined);
    const { host, serverUuid, attemptId } = order;
    const key = `${host} ${attemptId}`;
    this.#unrecorded.set(key, { host, serverUuid, pinning });
    try {
      return await build(pinning);
    } finally {
      this.#unrecorded.delete(key);
    }
  }

  /** Waits for nothing, so that no other choice can come between. */
  #choose({ host, serverUuid, server, allocation }: PrepareOrder): GuestPinning | undefined {
    const needs = guestNeedsOf(server, allocation);
    if (needs.kind === "refused") throw new QemuError("unavailable", needs.reason);
    const isDedicated = needs.extra.count > 0 || needs.vcpus.some((vcpu) => vcpu.isDedicated);
    const held = isDedicated ? this.#heldOn(host) : [];
    const cpusOf = (isOwn: boolean) =>
      new Set(
        held.filter((one) => (one.serverUuid === serverUuid) === isOwn).flatMap(({ pinning }) => pinning?.held ?? []),
      );
    const chosen = chooseHostCpus(needs, { layout: this.#layoutOf(host), taken: cpusOf(false), own: cpusOf(true) });
    if (chosen.kind === "refused") throw new QemuError("unavailable", chosen.reason);
    return isUnpinned(chosen.pinning) ? undefined : chosen.pinning;
  }

  #heldOn(host: string): readonly Holder[] {
    let records: readonly GuestRecord[];
    try {
      records = this.#records();
    } catch (error) {
      const why = `the dedicated CPUs that are free are unknown, because ${messageOf(error)}`;
      throw new QemuError("unavailable", why, { cause: error });
    }
    return [...records, ...this.#unrecorded.values()].filter((one) => one.host === host);
  }
}
