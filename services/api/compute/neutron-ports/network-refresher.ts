import type { OpenedNote } from "../../../../core/stores/api/port-note-store.ts";
import { NetworkingError } from "../../../../core/stores/networking-error.ts";
import type { Clock, Timer } from "../../../../runtime/clock.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import type { RequestsPort } from "../../ports.ts";
import { refreshPorts } from "./refresh-ports.ts";

/** The events after which the ports of a server may have other addresses. */
const CHANGES = ["network-changed", "network-vif-deleted"];
/** Maximum number of servers that are brought up to date at a time. */
const SERVERS_AT_A_TIME = 8;
/** Maximum number of servers of one round, which are looked up with one question to each cell. */
const ROUND_MAX = 500;
/** Maximum number of servers that wait. Those beyond it are left to the settler. */
const WAITING_MAX = 10_000;
/** The tries of one server take five minutes together. After that, the settler does it. */
const TRIES_MAX = 15;
const RETRY_MS = 500;
const RETRY_MS_MAX = 30_000;

/** An event of Neutron about a server. */
interface NetworkEvent {
  readonly name: string;
  readonly server_uuid: string;
  readonly tag?: string;
}

interface RefresherDeps {
  readonly neutron: NeutronDeps;
  readonly store: Pick<RequestsPort, "requests">;
  readonly cells: Cells;
  readonly clock: Clock;
  readonly events: Pick<ApiEvents, "portsNotSwept">;
}

type Known = Parameters<typeof refreshPorts>[1];

/** A server whose record must be compared with Neutron. */
interface Stale {
  readonly serverUuid: string;
  readonly version: number;
  /** Nobody else has opened the server's note, so that it may be settled after the comparison. */
  readonly maySettle: boolean;
  /** The ports that are gone, as events say. */
  readonly deleted: readonly string[];
  readonly tries: number;
  readonly dueMs: number;
}

/**
 * Writes into the records of servers what Neutron shows about their ports: addresses, floating IPs, and ports that are gone. All reports about one server
 * that wait together count as one. A server that is busy, and a cell or a Neutron that does not answer, are tried again with growing delays. The note of
 * each server is open meanwhile and names the ports that are gone, so that the settler of some api does it if this process ends or gives up.
 */
export class NetworkRefresher {
  readonly #deps: RefresherDeps;
  readonly #waiting = new Map<string, Stale>();
  readonly #running = new Map<string, Stale>();
  #timer: Timer | null = null;
  #round: Promise<void> | null = null;
  #isStopped = false;

  constructor(deps: RefresherDeps) {
    this.#deps = deps;
  }

  /** Nothing runs before the first report. */
  start(): void {}

  /** Resolves when the work under way has ended. The servers that wait are left to the settler. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#round;
  }

  /** Takes events of Neutron. When this resolves they are noted in the database, and the work begins. Events of other kinds have no effect. */
  async hear(events: readonly NetworkEvent[]): Promise<void> {
    const deletedOf = deletedPorts(events);
    if (deletedOf.size === 0) return;
    await this.#note(deletedOf);
    this.#wake();
  }

  /** Brings servers up to date that a call has changed in Neutron. What cannot be done at once is done later. Rejects as the API database does. */
  async refresh(serverUuids: readonly string[]): Promise<void> {
    const noted = await this.#note(new Map(serverUuids.map((uuid) => [uuid, []])));
    try {
      await this.#refresh(noted.flatMap((uuid) => this.#take(uuid) ?? []));
    } finally {
      this.#wake();
    }
  }

  /** Opens the notes of servers and puts these into the queue. Returns the servers that wait now. */
  async #note(deletedOf: ReadonlyMap<string, readonly string[]>): Promise<readonly string[]> {
    const { notes } = this.#deps.neutron;
    const opened = await notes.openNotes(
      [...deletedOf].map(([serverUuid, deletedPorts]) => ({ serverUuid, keptPorts: [], deletedPorts })),
    );
    for (const note of opened) this.#add(note, deletedOf.get(note.serverUuid) ?? []);
    return opened.map(({ serverUuid }) => serverUuid);
  }

  #add({ serverUuid, version, wasOpen }: OpenedNote, deleted: readonly string[]): void {
    const before = this.#waiting.get(serverUuid);
    if (before === undefined && this.#waiting.size >= WAITING_MAX) return;
    const last = before ?? this.#running.get(serverUuid);
    const isOwn = last?.maySettle === true && last.version + 1 === version;
    this.#waiting.set(serverUuid, {
      ...{ serverUuid, version, maySettle: !wasOpen || isOwn, tries: 0, dueMs: 0 },
      deleted: [...new Set([...(before?.deleted ?? []), ...deleted])],
    });
  }

  /** Takes a server out of the queue. */
  #take(serverUuid: string): Stale | null {
    const stale = this.#waiting.get(serverUuid);
    if (stale === undefined || this.#running.has(serverUuid)) return null;
    this.#waiting.delete(serverUuid);
    this.#running.set(serverUuid, stale);
    return stale;
  }

  /** Begins a round of work now, or sets the timer for the next one. A server that a call works on waits until this call has ended. */
  #wake(): void {
    if (this.#isStopped || this.#round !== null) return;
    this.#timer?.cancel();
    this.#timer = null;
    const nowMs = this.#deps.clock.monotonic();
    const free = [...this.#waiting.values()].filter(({ serverUuid }) => !this.#running.has(serverUuid));
    if (free.length === 0) return;
    const due = free.filter(({ dueMs }) => dueMs <= nowMs).slice(0, ROUND_MAX);
    const taken = due.flatMap(({ serverUuid }) => this.#take(serverUuid) ?? []);
    if (taken.length === 0) {
      const nextMs = free.reduce((least, { dueMs }) => Math.min(least, dueMs), Number.POSITIVE_INFINITY);
      this.#timer = this.#deps.clock.setTimer(Math.max(1, nextMs - nowMs), () => this.#wake());
      return;
    }
    this.#round = this.#refresh(taken)
      .catch((error: unknown) => this.#deps.events.portsNotSwept(error))
      .finally(() => {
        this.#round = null;
        this.#wake();
      });
  }

  /** Brings servers that were taken up to date, and puts those back into the queue for which it was not possible. */
  async #refresh(taken: readonly Stale[]): Promise<void> {
    const agreeing = new Set<string>();
    try {
      const known = (
        await findServers(
          this.#deps,
          taken.map(({ serverUuid }) => serverUuid),
        )
      ).values();
      const deletedOf = new Map(taken.map(({ serverUuid, deleted }) => [serverUuid, deleted]));
      let isSilent = false;
      const refreshOne = async (one: Known): Promise<void> => {
        const { uuid } = one.server;
        try {
          if (await refreshPorts(this.#deps.neutron, one, deletedOf.get(uuid) ?? [])) agreeing.add(uuid);
        } catch (error) {
          if (!(error instanceof NetworkingError)) throw error;
          isSilent ||= error.code === "unreachable";
        }
      };
      const refreshSome = async (): Promise<void> => {
        for (const one of known) if (!isSilent) await refreshOne(one);
      };
      await Promise.all(Array.from({ length: SERVERS_AT_A_TIME }, refreshSome));
    } finally {
      for (const stale of taken) {
        this.#running.delete(stale.serverUuid);
        if (!agreeing.has(stale.serverUuid)) this.#retry(stale);
      }
    }
    const agreed = taken.filter(({ serverUuid, maySettle }) => maySettle && agreeing.has(serverUuid));
    // The changes have been made. If this fails, the settler makes the same comparison.
    await this.#deps.neutron.notes.settleNotes(agreed).catch(() => undefined);
  }

  /** A report that came meanwhile stands for the earlier one, too. */
  #retry(stale: Stale): void {
    const tries = stale.tries + 1;
    const newer = this.#waiting.get(stale.serverUuid);
    if (newer !== undefined) {
      const deleted = [...new Set([...stale.deleted, ...newer.deleted])];
      this.#waiting.set(stale.serverUuid, { ...newer, deleted });
    } else if (tries < TRIES_MAX && this.#waiting.size < WAITING_MAX) {
      const dueMs = this.#deps.clock.monotonic() + Math.min(RETRY_MS * 2 ** stale.tries, RETRY_MS_MAX);
      this.#waiting.set(stale.serverUuid, { ...stale, tries, dueMs });
    }
  }
}

/** The ports that are gone, by the server that the events are about. */
function deletedPorts(events: readonly NetworkEvent[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const { name, server_uuid, tag = "" } of events) {
    const serverUuid = canonicalUuid(server_uuid);
    if (serverUuid === null || !CHANGES.includes(name)) continue;
    const deleted = name === "network-vif-deleted" ? canonicalUuid(tag) : null;
    found.set(serverUuid, [...(found.get(serverUuid) ?? []), ...(deleted === null ? [] : [deleted])]);
  }
  return found;
}

/** Reads the servers in their cells. Those whose cell does not answer are left out. */
async function findServers(
  { store, cells }: Pick<RefresherDeps, "store" | "cells">,
  uuids: readonly string[],
): Promise<readonly Known[]> {
  const found: Known[] = [];
  for (const [name, records] of Map.groupBy(await store.requests(uuids), ({ cell }) => cell ?? "")) {
    const cell = cells.get(name);
    const answer = await cell?.servers(records.map(({ serverUuid }) => serverUuid));
    if (cell === undefined || answer?.kind !== "answer") continue;
    const recordOf = new Map(records.map((record) => [record.serverUuid, record]));
    for (const server of answer.value) {
      const record = recordOf.get(server.uuid);
      if (record !== undefined) found.push({ record, cell, server });
    }
  }
  return found;
}
