import { Duplex } from "node:stream";
import { FakeDisplay } from "./fake-display.ts";
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
  readonly #open = new Map<string, Set<Duplex>>();

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

  /** A console that greets with the prompt of a login, and repeats what is typed. It ends when the guest's run ends. */
  open(guest: GuestName): Duplex {
    const console = new Duplex({
      read: () => undefined,
      write: (typed, _encoding, done) => {
        console.push(typed);
        done();
      },
      final: (done) => {
        console.push(null);
        done();
      },
    });
    console.push(`${guest.serverUuid} login:\r\n`);
    return this.#kept(guest, console);
  }

  /** A display, which ends when the guest's run ends. */
  openDisplay(guest: GuestName): Duplex {
    return this.#kept(guest, new FakeDisplay(guest.serverUuid));
  }

  /** Ends the open consoles of a guest that does not run any longer. */
  end(guest: GuestName): void {
    const open = this.#open.get(keyOf(guest)) ?? [];
    this.#open.delete(keyOf(guest));
    for (const console of open) console.destroy();
  }

  #kept(guest: GuestName, console: Duplex): Duplex {
    const key = keyOf(guest);
    const open = this.#open.get(key) ?? new Set();
    this.#open.set(key, open.add(console));
    console.once("close", () => {
      open.delete(console);
      if (open.size === 0 && this.#open.get(key) === open) this.#open.delete(key);
    });
    return console;
  }

  forget(guest: GuestName): void {
    this.#boots.delete(keyOf(guest));
    this.end(guest);
  }
}

const keyOf = ({ host, attemptId }: GuestName): string => `${host} ${attemptId}`;
