import type { CopyOfServer } from "./sim-cell.ts";

/**
 * Law 6 in a cell whose database was restored. Its rows may speak of guests that are long gone, so that what they say cannot be held against
 * them; what can is that nothing which was alive is destroyed for them. A server is alive if it ran when the database was restored, and as
 * long as no user wants it gone, or to stand, since a server that stands may be moved without ever running again.
 */
export class Survivors {
  readonly #copiesOf: (serverUuid: string) => readonly CopyOfServer[];
  /** Attempts whose guest has run, or was handed what another one had. */
  readonly #whole = new Set<string>();
  readonly #alive = new Set<string>();
  readonly #handedOver = new Set<string>();
  readonly #moved = new Set<string>();
  /** Servers that are to be gone. */
  readonly #given = new Set<string>();

  constructor(copiesOf: (serverUuid: string) => readonly CopyOfServer[]) {
    this.#copiesOf = copiesOf;
  }

  /** A guest of the server may have begun to run. */
  started(serverUuid: string): void {
    for (const { attemptId, running } of this.#copiesOf(serverUuid)) if (running) this.#whole.add(attemptId);
  }

  /** The guest of this attempt has what the server's running guest had, which is kept, stopped. */
  handedOver(serverUuid: string, attemptId: string): void {
    this.#whole.add(attemptId);
    this.#handedOver.add(serverUuid);
  }

  /**
   * Law 4 is not asked of a server that was handed over before its cell's database was restored: a database that has forgotten the move takes the
   * old guest for the server's only one and has it started, and the new guest runs on in quarantine.
   */
  mayRunTwice(serverUuid: string): boolean {
    return this.#moved.has(serverUuid);
  }

  /** A user has asked for that, whatever came of it. */
  unwanted(serverUuid: string, what: "gone" | "stopped"): void {
    this.#alive.delete(serverUuid);
    if (what === "gone") this.#given.add(serverUuid);
  }

  /** These servers run while the database of their cell is restored. */
  restored(serverUuids: readonly string[]): void {
    for (const uuid of serverUuids) {
      if (!this.#given.has(uuid)) this.#alive.add(uuid);
      if (this.#handedOver.has(uuid)) this.#moved.add(uuid);
    }
  }

  /** What is wrong now that a guest of the server is gone; null: nothing. */
  destroyed(serverUuid: string): string | null {
    if (!this.#alive.has(serverUuid)) return null;
    if (this.#copiesOf(serverUuid).some(({ attemptId }) => this.#whole.has(attemptId))) return null;
    return `the last copy of server ${serverUuid} is destroyed, which ran when its cell's database was restored`;
  }
}
