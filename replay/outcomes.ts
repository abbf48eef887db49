/** How the creation of a server ended. `atMs` is the time in milliseconds since the epoch. */
export type CreationOutcome =
  | { readonly kind: "active"; readonly atMs: number; readonly failedAttempts: number }
  | { readonly kind: "error"; readonly atMs: number; readonly failedAttempts: number; readonly reason: string };

/**
 * Connects callers that wait for a server with events that report its outcome. Either may come first: in one process, a server can be
 * ACTIVE before the answer to its POST was read.
 */
export class Outcomes {
  readonly #waiting = new Map<
    string,
    { readonly sinceMs: number; readonly resolve: (outcome: CreationOutcome) => void }
  >();
  readonly #early = new Map<string, CreationOutcome>();

  /** Resolves when the creation has ended. Each server may have one waiter. */
  of(serverUuid: string, nowMs: number): Promise<CreationOutcome> {
    const early = this.#early.get(serverUuid);
    if (early !== undefined) {
      this.#early.delete(serverUuid);
      return Promise.resolve(early);
    }
    return new Promise((resolve) => this.#waiting.set(serverUuid, { sinceMs: nowMs, resolve }));
  }

  /** Only the first outcome counts. */
  tell(serverUuid: string, outcome: CreationOutcome): void {
    const waiting = this.#waiting.get(serverUuid);
    if (waiting === undefined) {
      if (!this.#early.has(serverUuid)) this.#early.set(serverUuid, outcome);
      return;
    }
    this.#waiting.delete(serverUuid);
    waiting.resolve(outcome);
  }

  /** Servers that have been waited for since before that time, oldest first, because their outcomes may have been lost. */
  waitingSince(beforeMs: number, limit: number): string[] {
    const uuids: string[] = [];
    for (const [uuid, { sinceMs }] of this.#waiting) {
      if (sinceMs >= beforeMs || uuids.length >= limit) break;
      uuids.push(uuid);
    }
    return uuids;
  }
}
