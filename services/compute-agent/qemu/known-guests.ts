import { loadGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import type { QmpEvent } from "../../../adapters/qemu/qmp-client.ts";
import { findRunningQemu } from "../../../adapters/qemu/running-qemu.ts";
import type { GuestName } from "../journal.ts";
import type { GuestDirs } from "./guest-dirs.ts";
import { type PowerControl, stopGuest } from "./guest-power.ts";

/** The guests of an agent by their names. Each is read from its directory once. */
export class KnownGuests {
  readonly #dirs: GuestDirs;
  readonly #heardFrom: (name: GuestName) => (event: QmpEvent | null) => void;
  readonly #guests = new Map<string, QemuGuest>();
  /** Guests whose records are being read. */
  readonly #loading = new Map<string, Promise<QemuGuest | null>>();
  /** Guests on which the agent's last process may have left something unfinished, since their records have not been read yet. */
  readonly #unread = new Set<string>();

  /** `heardFrom` returns the listener to the events of a guest's QEMU. */
  constructor(dirs: GuestDirs, heardFrom: (name: GuestName) => (event: QmpEvent | null) => void) {
    this.#dirs = dirs;
    this.#heardFrom = heardFrom;
  }

  all(): readonly QemuGuest[] {
    return [...this.#guests.values()];
  }

  add(name: GuestName, guest: QemuGuest): void {
    this.#guests.set(keyOf(name), guest);
  }

  /** Forgets a guest that is being destroyed, and its QEMU. */
  forget(name: GuestName): void {
    this.#guests.get(keyOf(name))?.detach();
    for (const known of [this.#guests, this.#loading, this.#unread]) known.delete(keyOf(name));
  }

  /**
   * Stops a guest that another guest replaces, and rejects as `stopGuest` does. If somebody has removed its directory, its stop cannot be written down, and it can never be started
   * again: then its QEMU ends before this rejects.
   */
  async stopForGood(guest: QemuGuest, power: PowerControl): Promise<void> {
    try {
      await stopGuest(guest, power);
    } catch (error) {
      if (!power.signal.aborted && (await this.#lacksRecord(guest.dir).catch(() => false)))
        await guest.end().catch(() => undefined);
      throw error;
    }
  }

  /** Whether nothing of the guest is left on the host: neither its record nor a QEMU, which may run in a directory that somebody has removed. Rejects if its record cannot be read, or not now. */
  async isLost({ attemptId }: GuestName): Promise<boolean> {
    await this.#dirs.open();
    const dir = this.#dirs.dirOf(attemptId);
    const isLost = (await this.#lacksRecord(dir)) && findRunningQemu(dir) === null;
    if (isLost) await this.#dirs.confirm();
    return isLost;
  }

  /** Forgets a guest of which nothing is left, since it is found by its directory alone from then on. Never rejects. */
  async forgetLost(name: GuestName): Promise<void> {
    if (await this.isLost(name).catch(() => false)) this.forget(name);
  }

  /** The guest, or null if there is none. It is of the agent's last process: until this has been able to read its record, `isUnread`. */
  async findLeft(name: GuestName): Promise<QemuGuest | null> {
    this.#unread.add(keyOf(name));
    const guest = await this.find(name);
    this.#unread.delete(keyOf(name));
    return guest;
  }

  isUnread(name: GuestName): boolean {
    return this.#unread.has(keyOf(name));
  }

  /** The guest as far as it is known without a look at its directory. Throws if its record could not be read yet. */
  known(name: GuestName): QemuGuest | null {
    const guest = this.#guests.get(keyOf(name)) ?? null;
    if (guest === null && this.isUnread(name)) throw new Error("the guest's record could not be read yet");
    return guest;
  }

  async existing(name: GuestName): Promise<QemuGuest> {
    const guest = await this.find(name);
    if (guest === null) throw new Error("there is no such guest");
    return guest;
  }

  /** The guest, or null if there is none. Rejects if its record cannot be read, or not now. */
  async find(name: GuestName): Promise<QemuGuest | null> {
    const key = keyOf(name);
    const known = this.#guests.get(key) ?? this.#loading.get(key);
    if (known !== undefined) return known;
    const loading = this.#load(name);
    this.#loading.set(key, loading);
    try {
      const guest = await loading;
      // It may have been destroyed meanwhile.
      if (guest !== null && this.#loading.get(key) === loading) this.#guests.set(key, guest);
      return guest;
    } finally {
      if (this.#loading.get(key) === loading) this.#loading.delete(key);
    }
  }

  /** Whether there is no record in a guest's directory. Rejects if it cannot be read, or not now. */
  async #lacksRecord(dir: string): Promise<boolean> {
    return (await this.#dirs.storage.look(() => loadGuestRecord(dir))) === null;
  }

  async #load(name: GuestName): Promise<QemuGuest | null> {
    await this.#dirs.open();
    const dir = this.#dirs.dirOf(name.attemptId);
    const guest = await QemuGuest.load(dir, this.#heardFrom(name), this.#dirs.storage);
    return guest?.record.host === name.host ? guest : null;
  }
}

const keyOf = ({ host, attemptId }: GuestName): string => `${host} ${attemptId}`;
