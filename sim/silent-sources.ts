import type { CopyOfServer } from "./sim-cell.ts";

/** A guest that has received everything of a guest that ran. */
interface Arrival {
  readonly serverUuid: string;
  /** The agent of the source's host. */
  readonly agent: string;
  /** The host of the guest. */
  readonly host: string;
}

/**
 * Law 6 during a live move: a destination that has received everything may be the only copy of its server that is left. So it is not destroyed before anything is heard of the
 * source's agent, unless a user wants that, or an operator has forced its own host down. That the source's host is forced down makes no difference.
 */
export class SilentSources {
  readonly #copiesOf: (serverUuid: string) => readonly CopyOfServer[];
  /** The hosts of which an operator has said that nothing runs there. */
  readonly #toldDown: () => ReadonlySet<string>;
  /** The destinations whose sources have not been heard of since they have handed over, by attempt. */
  readonly #unheard = new Map<string, Arrival>();
  /** The servers that users have deleted: a hand-over that ends later is no reason to keep their guests. */
  readonly #unwanted = new Set<string>();

  constructor(
    copiesOf: (serverUuid: string) => readonly CopyOfServer[],
    toldDown: () => ReadonlySet<string> = () => new Set(),
  ) {
    this.#copiesOf = copiesOf;
    this.#toldDown = toldDown;
  }

  /** A guest that was handed over itself is no longer the only copy: the next host's guest has everything, and is watched. */
  handedOver(fromAttemptId: string, toAttemptId: string, arrival: Arrival): void {
    this.#unheard.delete(fromAttemptId);
    if (!this.#unwanted.has(arrival.serverUuid)) this.#unheard.set(toAttemptId, arrival);
  }

  /** Notes that a conductor has received a message of the agent. */
  heard(agent: string): void {
    this.#forget((arrival) => arrival.agent === agent);
  }

  /** Notes that a user has asked for the server's guests to be deleted. */
  unwanted(serverUuid: string): void {
    this.#unwanted.add(serverUuid);
    this.#forget((arrival) => arrival.serverUuid === serverUuid);
  }

  /** Returns the violation that results from the loss of a guest of the server, or null. */
  destroyed(serverUuid: string): string | null {
    const copies = new Set(this.#copiesOf(serverUuid).map(({ attemptId }) => attemptId));
    for (const [attemptId, arrival] of this.#unheard) {
      if (arrival.serverUuid !== serverUuid || copies.has(attemptId)) continue;
      this.#unheard.delete(attemptId);
      if (this.#toldDown().has(arrival.host)) continue;
      return `the guest of server ${serverUuid} that had received everything is destroyed while its source (${arrival.agent}) is silent`;
    }
    return null;
  }

  #forget(isSettled: (arrival: Arrival) => boolean): void {
    for (const [attemptId, arrival] of this.#unheard) if (isSettled(arrival)) this.#unheard.delete(attemptId);
  }
}
