import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Static } from "typebox";
import { firstFault } from "../../runtime/first-fault.ts";
import { PlainType } from "../../runtime/plain-type.ts";

/** For which guest, and for which of its ports, a virtual function was set last. */
export interface FunctionNote {
  /** The guest's directory. */
  readonly dir: string;
  readonly portId: string;
  readonly mac: string;
  /** MAC addresses of former guests, which the card may still have because it did not take what came after them. */
  readonly formerMacs?: readonly string[] | undefined;
}

const Text = PlainType.String({ maxLength: 4_096 });
const Notes = PlainType.Object({
  version: PlainType.Literal(1),
  /** The boot of the host in which the functions were set. A host that restarts forgets what its cards were told. */
  boot: Text,
  functions: PlainType.Record(
    Text,
    PlainType.Object({ dir: Text, portId: Text, mac: Text, formerMacs: PlainType.Optional(PlainType.Array(Text)) }),
  ),
});

/**
 * The virtual functions whose settings the host's cards may still have, written before a card is told them. A guest's record names its functions as
 * well, but it may be damaged, or be gone with the guest's directory. Then only this file says that the functions must be cleared before others get them: what
 * a card shows may also be the operator's own setting.
 */
export class FunctionNotes {
  readonly #path: string | null;
  readonly #boot: string;
  readonly #notes: Map<string, FunctionNote>;
  readonly #onUnwritten: OnUnwritten;
  /** Whether the file says something else than these notes, since it could not be written. */
  #isUnwritten = false;

  /** Without a path the notes end with the process. `onUnwritten` is called when the file cannot be written, and not again before it could. */
  constructor({
    path,
    boot,
    onUnwritten = () => undefined,
  }: {
    readonly path: string | null;
    readonly boot: string;
    readonly onUnwritten?: OnUnwritten | undefined;
  }) {
    this.#path = path;
    this.#boot = boot;
    this.#onUnwritten = onUnwritten;
    this.#notes = new Map(path === null ? [] : Object.entries(notesIn(path, boot)));
  }

  /** By the functions' addresses. */
  all(): ReadonlyMap<string, FunctionNote> {
    return this.#notes;
  }

  put(address: string, note: FunctionNote): void {
    const known = this.#notes.get(address);
    if (known !== undefined && JSON.stringify(textOf(known)) === JSON.stringify(textOf(note))) return;
    this.#notes.set(address, note);
    this.#write();
  }

  remove(address: string): void {
    if (this.#notes.delete(address)) this.#write();
  }

  /** Writes what could not be written. */
  retry(): void {
    if (this.#isUnwritten) this.#write();
  }

  /** A note that finds no room on the disk must not keep guests from their ports: their records have the same, and the next note writes all. */
  #write(): void {
    if (this.#path === null) return;
    const text = JSON.stringify({ version: 1, boot: this.#boot, functions: Object.fromEntries(this.#notes) });
    try {
      mkdirSync(dirname(this.#path), { recursive: true });
      writeFileSync(`${this.#path}.new`, text, { mode: 0o600 });
      renameSync(`${this.#path}.new`, this.#path);
      this.#isUnwritten = false;
    } catch (error) {
      const isNew = !this.#isUnwritten;
      this.#isUnwritten = true;
      if (isNew) this.#onUnwritten(this.#path, error);
    }
  }
}

type OnUnwritten = (path: string, error: unknown) => void;

const textOf = ({ dir, portId, mac, formerMacs = [] }: FunctionNote) => [dir, portId, mac, ...formerMacs];

function notesIn(path: string, boot: string): Readonly<Record<string, FunctionNote>> {
  try {
    const read: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (firstFault(Notes, read) !== null) return {};
    const notes = read as Static<typeof Notes>;
    return notes.boot === boot ? notes.functions : {};
  } catch {
    return {};
  }
}
