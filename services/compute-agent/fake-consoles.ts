import type { GuestName } from "./journal.ts";

const BOOTS_KEPT = 100;
/** The lines of one boot. Tempest expects more than ten of a guest that has booted. */
const LINES = [
  "firmware starts",
  "memory found",
  "processors found",
  "boot device found",
  "boot loader starts",
  "kernel starts",
  "root file system is mounted",
  "system services start",
  "network is up",
  "console is ready",
  "system is up",
  "login:",
];

/**
 * The output of the fake driver's guests to their consoles: some lines for each boot. Only the newest lines are kept.
 */
export class FakeConsoles {
  /** The number of boots of each guest, by host and attempt id. */
  readonly #boots = new Map<string, number>();

  boot(guest: GuestName): void {
    this.#boots.set(keyOf(guest), (this.#boots.get(keyOf(guest)) ?? 0) + 1);
  }

  /** The last bytes of the guest's console. Empty before its first boot. */
  read(guest: GuestName, bytesMax: number): Uint8Array {
    const last = this.#boots.get(keyOf(guest)) ?? 0;
    const first = Math.max(1, last - BOOTS_KEPT + 1);
    const boots = Array.from({ length: last - first + 1 }, (_, index) => first + index);
    const text = boots.flatMap((boot) => LINES.map((line) => `${guest.serverUuid} boot ${boot}: ${line}\n`)).join("");
    const bytes = new TextEncoder().encode(text);
    return bytes.subarray(Math.max(0, bytes.length - bytesMax));
  }

  forget(guest: GuestName): void {
    this.#boots.delete(keyOf(guest));
  }
}

const keyOf = ({ host, attemptId }: GuestName): string => `${host} ${attemptId}`;
