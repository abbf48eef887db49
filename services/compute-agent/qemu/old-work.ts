import type { GuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { interfaceDevice } from "../../../adapters/qemu/virtual-machine.ts";
import type { VolumeFiles } from "../../../adapters/qemu/volume-files.ts";
import { deviceOf } from "../../../adapters/qemu/volume-plugs.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { SnapshotStore } from "../../../runtime/snapshot-store.ts";
import type { GuestName } from "../journal.ts";
import type { CalledOffMoves } from "./called-off-moves.ts";
import { completeInterfaces } from "./complete-interfaces.ts";
import { completeVolumes } from "./complete-volumes.ts";
import { namedInterfaces } from "./guest-interfaces.ts";
import { callOffHandOver } from "./hand-over.ts";
import type { KnownGuests } from "./known-guests.ts";
import { endOldSnapshot } from "./snapshot-guest.ts";

/** A guest can release devices as often as it likes. It is compared with its record for that once within this time; after a further release, its next order compares it. */
const RELEASED_MS = 60_000;

interface OldWorkDeps {
  readonly clock: Clock;
  readonly guests: KnownGuests;
  readonly snapshots: SnapshotStore;
  readonly calledOff: CalledOffMoves;
  /** Called for each guest whose old work cannot be ended now. */
  readonly onUnknown: (guest: GuestName, error: unknown) => void;
  /** The files of volumes. Null on a host that has none. */
  readonly volumes: VolumeFiles | null;
  /** Called for each guest that lacks volumes of its record and cannot get them. */
  readonly onVolumesLeft: (guest: GuestName, error: unknown) => void;
  /** How long a guest may need to release an interface. */
  readonly releaseMs?: number | undefined;
  /** Called for each guest whose interfaces differ from its record and cannot be changed. */
  readonly onInterfacesLeft: (guest: GuestName, error: unknown) => void;
}

/**
 * What was begun for guests and has no end: the moves and the copies of disks of the agent's last process, of which a conductor repeats its orders, and those that could not be
 * ended when they failed; and the changes of interfaces of the last process, which nobody repeats, and volumes that the guest lacks, so they are completed. A guest may release a
 * device when everybody has stopped waiting for it: then it is completed, too. Each guest's are ended once at a time, since two ends of one would change the guest beside each other.
 */
export class OldWork {
  readonly #deps: OldWorkDeps;
  /** The guests whose old work is being ended. */
  readonly #ending = new Map<string, Promise<void>>();
  /** The guests whose volumes and interfaces are being completed. */
  readonly #completing = new Map<string, AbortController>();
  /** The guests with an order that does not wait for their volumes and interfaces, or waits for them no longer. A guest has one order at a time. */
  readonly #skipping = new Set<string>();
  /** The guests whose volumes and interfaces could not be compared with the record yet, since their QEMU did not answer, or an order came before. */
  readonly #uncompared = new Set<string>();
  /** How many orders of a guest are being carried out. */
  readonly #ordered = new Map<string, number>();
  /** The devices that guests have released during an order or an end of old work, which may have waited for that. They are looked at when it is over. */
  readonly #released = new Map<string, Set<string>>();
  /** When guests were compared with their record last because they had released a device. */
  readonly #comparedAtMs = new Map<string, number>();
  readonly #closing = new AbortController();

  constructor(deps: OldWorkDeps) {
    this.#deps = deps;
  }

  /**
   * Ends what the agent's last process began for the guest. Never rejects: a guest for which this cannot be done now must not keep the agent from its other guests, and its next
   * order tries again.
   */
  endOfLastProcess(name: GuestName): Promise<void> {
    return this.#once(name, () => this.#endOfLastProcess(name));
  }

  /**
   * The guest, when all its old work has ended. Rejects if that cannot be done now. The volumes and interfaces of a guest that ends or starts are not
   * completed first (`skipsDevices`): a guest may need 10 s to release some interfaces, and a QEMU or a storage that is silent longer. Nor does the next order of a guest wait for them in the
   * turn of one that is no longer wanted: if the order's signal is raised, this rejects without having completed them.
   */
  async atRest(
    name: GuestName,
    { skipsDevices = false, signal }: { readonly skipsDevices?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<QemuGuest> {
    const skip = () => {
      this.#skipping.add(keyOf(name));
      this.#completing.get(keyOf(name))?.abort(new Error("the guest was given an order"));
    };
    if (skipsDevices || signal?.aborted) skip();
    else signal?.addEventListener("abort", skip, { once: true });
    try {
      const guest = await this.#withoutOldWork(name);
      if (!skipsDevices && this.#uncompared.has(keyOf(name)))
        await this.#once(name, () => this.#completeDevices(name, guest));
      signal?.throwIfAborted();
      return guest;
    } finally {
      signal?.removeEventListener("abort", skip);
      this.#skipping.delete(keyOf(name));
    }
  }

  /** Carries out an order with the guest, as soon as that is at rest. */
  order<Done>(
    name: GuestName,
    options: { readonly skipsDevices?: boolean; readonly signal?: AbortSignal },
    carryOut: (guest: QemuGuest) => Promise<Done>,
  ): Promise<Done> {
    return this.during(name, async () => carryOut(await this.atRest(name, options)));
  }

  /** Carries out an order of the guest. What the guest releases meanwhile is the order's, unless the guest's record names it at the end. */
  async during<Done>(name: GuestName, carryOut: () => Promise<Done>): Promise<Done> {
    const key = keyOf(name);
    this.#ordered.set(key, (this.#ordered.get(key) ?? 0) + 1);
    try {
      return await carryOut();
    } finally {
      const others = (this.#ordered.get(key) ?? 1) - 1;
      if (others > 0) this.#ordered.set(key, others);
      else this.#ordered.delete(key);
      this.#lookAtReleased(name);
    }
  }

  /**
   * Called when the guest's QEMU has released a device. If nobody waits for that any longer, and the guest's record names the device still, the guest is compared with its record:
   * it loses the rest of an interface that it was to release, and gets back what its server has.
   */
  released(name: GuestName, device: string): void {
    const key = keyOf(name);
    this.#released.set(key, (this.#released.get(key) ?? new Set()).add(device));
    this.#lookAtReleased(name);
  }

  /** Ends a live move of the guest that was called off, between the guest's orders. Rejects if that cannot be done now. */
  async endCalledOff(name: GuestName): Promise<void> {
    await this.#ending.get(keyOf(name))?.catch(() => undefined);
    await this.#deps.calledOff.end(name, await this.#deps.guests.existing(name));
  }

  async #withoutOldWork(name: GuestName): Promise<QemuGuest> {
    const { guests, snapshots, calledOff } = this.#deps;
    // The end of its old work may still be under way, also if its caller has stopped waiting for it.
    await this.#ending.get(keyOf(name))?.catch(() => undefined);
    if (guests.isUnread(name)) await this.endOfLastProcess(name);
    const guest = await guests.existing(name);
    if (guest.record.copiesTo !== undefined) await this.#once(name, () => endOldSnapshot(guest, snapshots));
    await calledOff.end(name, guest);
    return guest;
  }

  /** Leaves the old work of a guest that is being destroyed to its own end. */
  forget(name: GuestName): void {
    this.#ending.delete(keyOf(name));
    for (const known of [this.#uncompared, this.#released, this.#comparedAtMs]) known.delete(keyOf(name));
    this.#completing.get(keyOf(name))?.abort(new Error("the guest is destroyed"));
  }

  /** Leaves what is under way to the agent's next process. */
  close(): void {
    this.#closing.abort();
  }

  async #endOfLastProcess(name: GuestName): Promise<void> {
    const { guests, snapshots, calledOff, onUnknown } = this.#deps;
    let toAttemptId: string | undefined;
    let guest: QemuGuest | null;
    try {
      guest = await guests.findLeft(name);
      if (guest === null) return;
      const { handedTo } = guest.record;
      if (handedTo?.isDone === false) toAttemptId = handedTo.attemptId;
      await endOldSnapshot(guest, snapshots);
      if (toAttemptId !== undefined) await callOffHandOver(guest);
    } catch (error) {
      // It may have been destroyed meanwhile.
      if (!this.#ending.has(keyOf(name))) return;
      onUnknown(name, error);
      if (toAttemptId !== undefined) calledOff.add(name, toAttemptId, { isWhole: false });
      this.#uncompared.add(keyOf(name));
      return;
    }
    await this.#completeDevices(name, guest);
  }

  #lookAtReleased(name: GuestName): void {
    const key = keyOf(name);
    const devices = this.#released.get(key);
    if (devices === undefined || this.#ordered.has(key) || this.#ending.has(key)) return;
    if (this.#closing.signal.aborted) return;
    this.#released.delete(key);
    const { guests, clock } = this.#deps;
    const complete = async () => {
      const guest = await guests.existing(name);
      if (!devicesOf(guest.record).some((device) => devices.has(device))) return;
      this.#uncompared.add(key);
      // A guest that is being handed over keeps its devices as they are. If it stays after all, its next order compares them.
      if (guest.record.handedTo !== null) return;
      if (clock.monotonic() - (this.#comparedAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < RELEASED_MS) return;
      this.#comparedAtMs.set(key, clock.monotonic());
      await this.#completeDevices(name, guest);
    };
    // A guest that cannot be found has nothing to complete.
    this.#once(name, complete).catch(() => undefined);
  }

  /** Never rejects: a guest without one of its volumes or interfaces obeys its orders all the same. */
  async #completeDevices(name: GuestName, guest: QemuGuest): Promise<void> {
    const key = keyOf(name);
    if (this.#skipping.has(key)) {
      this.#uncompared.add(key);
      return;
    }
    const order = new AbortController();
    const isKnown = () => this.#ending.has(key) && !this.#closing.signal.aborted;
    this.#uncompared.delete(key);
    this.#completing.set(key, order);
    const { volumes, releaseMs, onVolumesLeft, onInterfacesLeft } = this.#deps;
    const signal = AbortSignal.any([this.#closing.signal, order.signal]);
    const parts = [
      { complete: () => completeVolumes(guest, volumes, signal), onLeft: onVolumesLeft },
      { complete: () => completeInterfaces(guest, { signal, releaseMs }), onLeft: onInterfacesLeft },
    ];
    try {
      for (const { complete, onLeft } of parts) {
        try {
          await complete();
        } catch (error) {
          // It may have been destroyed meanwhile.
          if (!isKnown()) return;
          if (!order.signal.aborted) onLeft(name, error);
          // QEMU refuses the same again. What it did not answer, and what an order came before, is tried once more with the guest's next order.
          if (error instanceof QemuError) continue;
          this.#uncompared.add(key);
          return;
        }
      }
    } finally {
      if (this.#completing.get(key) === order) this.#completing.delete(key);
    }
  }

  /** Joins the end of the guest's old work that is under way, or begins it. */
  #once(name: GuestName, end: () => Promise<void>): Promise<void> {
    const key = keyOf(name);
    const running = this.#ending.get(key);
    if (running !== undefined) return running;
    const ending = Promise.resolve()
      .then(end)
      .finally(() => {
        if (this.#ending.get(key) !== ending) return;
        this.#ending.delete(key);
        this.#lookAtReleased(name);
      });
    this.#ending.set(key, ending);
    return ending;
  }
}

/** QEMU's names of the devices that the record gives the guest. */
const devicesOf = ({ machine, volumes = [] }: GuestRecord): readonly string[] => [
  ...namedInterfaces(machine).map(({ id }) => interfaceDevice(id)),
  ...volumes.map(({ volumeId }) => deviceOf(volumeId)),
];

const keyOf = ({ host, attemptId }: GuestName): string => `${host} ${attemptId}`;
