import type { CopyOfServer } from "./sim-cell.ts";

/**
 * Law 6 in a cell whose database was restored. The rows may speak of guests that are long gone, so missing guests are not violations. But
 * nothing that was alive may be destroyed because of those rows. A server counts as alive if it ran when the database was restored, and as
 * long as no user wants it deleted or stopped; a stopped server may be moved without ever running again.
 */
export class Survivors {
  readonly #copiesOf: (serverUuid: string) => readonly CopyOfServer[];
  /** Attempts whose guest has run, or received the content of another guest. */
  readonly #whole = new Set<string>();
  readonly #alive = new Set<string>();
  /** Servers that are to be deleted. */
  readonly #given = new Set<string>();

  constructor(copiesOf: (serverUuid: string) => readonly CopyOfServer[]) {
    this.#copiesOf = copiesOf;
  }

  /** Notes that a guest of the server may have begun to run. */
  started(serverUuid: string): void {
    for (const { attemptId, running } of this.#copiesOf(serverUuid)) if (running) this.#whole.add(attemptId);
  }

  /**
   * Notes that one guest has received the content of the server's other guest, which is kept, stopped. The latter may never have run, because its start
   * has failed: it contains what the server had, and becomes its home again when a user reverts the move.
   */
  handedOver(from: string, to: string): void {
    this.#whole.add(from).add(to);
  }

  /** Notes that a user has asked for this, whatever the outcome. */
  unwanted(serverUuid: string, what: "gone" | "stopped"): void {
    this.#alive.delete(serverUuid);
    if (what === "gone") this.#given.add(serverUuid);
  }

  /** Notes which servers run while the database of their cell is restored. */
  restored(serverUuids: readonly string[]): void {
    for (const uuid of serverUuids) if (!this.#given.has(uuid)) this.#alive.add(uuid);
  }

  /** Returns the violation that results from the loss of a guest of the server, or null. */
  destroyed(serverUuid: string): string | null {
    if (!this.#alive.has(serverUuid)) return null;
    if (this.#copiesOf(serverUuid).some(({ attemptId }) => this.#whole.has(attemptId))) return null;
    return `the last copy of server ${serverUuid} is destroyed, which ran when its cell's database was restored`;
  }
}
