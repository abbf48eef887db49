import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { DueNote, PortNoteStore } from "../../../../core/stores/api/port-note-store.ts";
import { NetworkingError } from "../../../../core/stores/networking-error.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../../runtime/deadline.ts";
import { Ticker } from "../../../../runtime/ticker.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import { GrowingWaits } from "../../growing-waits.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import { PagedRounds } from "../../paged-rounds.ts";
import type { RequestsPort } from "../../ports.ts";
import { closeServer } from "../server-volumes/settle-building.ts";
import { endPreparedBindings } from "./end-prepared-bindings.ts";
import { refreshPorts } from "./refresh-ports.ts";
import { releasePorts } from "./release-ports.ts";

/** Longer than a call may take, and than Neutron works on a request whose sender has left. */
const OPEN_MS = 600_000;
const SWEEP_MS = 30_000;
/** A server that cannot be brought up to date at present is looked at again after a wait that doubles each time. */
const WAIT_MS = 2_000;
const WAIT_MS_MAX = 600_000;
/** Notes that one sweep compares with the requests. Cell events end nearly all notes, so the sweep may take hours for a large cloud. */
const SWEEP_SIZE = 10_000;
/** How long the answer that a server is gone waits for its ports, and how long after the deletion. */
const END_WAIT_MS = 5_000;
const ENDED_LATELY_MS = 60_000;
/** How many servers' ports are released at a time for callers who ask for the servers. */
const ENDING_MAX = 16;
/** How long nobody waits for Neutron any longer after it was silent. */
const SILENT_MS = 10_000;

/** A server in its cell. */
type Known = Parameters<typeof refreshPorts>[1];

/**
 * The ports that a server has by its own record. `gone`: no host can have a guest of it. `left`: it is gone, and a host may have a guest of it, perhaps for days: look again after a growing wait.
 * `unknown`: look again soon.
 */
type ServersPorts =
  | { readonly kind: "gone" }
  | { readonly kind: "living"; readonly named: readonly string[]; readonly known: Known | null }
  | { readonly kind: "left" }
  | { readonly kind: "unknown" };

/**
 * Takes the ports in Neutron away from servers that are gone, and those that a broken-off call left with a living server. A server's note says that
 * its ports must be compared. A cell or Neutron that does not answer changes nothing. Every step may be repeated, so any number of apis may do this
 * at a time.
 */
export class NeutronPortSettler {
  readonly #neutron: Pick<NeutronDeps, "networking" | "floatingIps">;
  readonly #notes: PortNoteStore;
  readonly #store: Pick<RequestsPort, "requests" | "accept" | "cancel" | "markDeleted">;
  readonly #cells: Cells;
  readonly #clock: Clock;
  readonly #events: Pick<ApiEvents, "portsNotSwept">;
  readonly #ticker: Ticker;
  readonly #rounds: PagedRounds<DueNote>;
  /** The notes that are looked at again later. */
  readonly #waits: GrowingWaits;
  /** The servers whose ports are being released at this moment for callers who ask for the server. */
  readonly #ending = new Map<string, Promise<void>>();
  /** The servers whose ports a round of `settle` is comparing at this moment. */
  readonly #settling = new Map<string, Promise<void>>();
  #silentUntilMs = Number.NEGATIVE_INFINITY;
  #sweptAtMs = Number.NEGATIVE_INFINITY;
  /** The last server of the sweep before, or null at the beginning. */
  #sweptTo: string | null = null;

  constructor(
    deps: Pick<NeutronDeps, "networking" | "floatingIps"> & {
      readonly notes: PortNoteStore;
      readonly store: Pick<RequestsPort, "requests" | "accept" | "cancel" | "markDeleted">;
      readonly cells: Cells;
      readonly events: Pick<ApiEvents, "portsNotSwept">;
      readonly clock: Clock;
    },
    options: { readonly pollMs: number },
  ) {
    this.#neutron = deps;
    this.#notes = deps.notes;
    this.#store = deps.store;
    this.#cells = deps.cells;
    this.#clock = deps.clock;
    this.#events = deps.events;
    this.#waits = new GrowingWaits(deps.clock, { msMax: WAIT_MS_MAX });
    this.#rounds = new PagedRounds((after, limit) => deps.notes.dueNotes(OPEN_MS, after, limit));
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: options.pollMs,
      work: () => this.settle(),
      onError: (error) => deps.events.portsNotSwept(error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /** Looks at the notes that are due. Rejects as the API database and Neutron do. */
  async settle(): Promise<void> {
    const isSweep = this.#clock.monotonic() - this.#sweptAtMs >= SWEEP_MS;
    if (isSweep) {
      this.#sweptTo = await this.#notes.sweepNotes(this.#sweptTo, SWEEP_SIZE);
      this.#sweptAtMs = this.#clock.monotonic();
    }
    await this.#rounds.run(async (page) => {
      const ended = isSweep ? await this.#endedAmong(page) : new Set<string>();
      for (const note of page) await this.#trySettling(note, ended.has(note.serverUuid));
    });
  }

  /**
   * Called before the answer that a server which its cell has deleted is gone. Releases its ports first, as Nova does, so that whoever has waited for the end
   * of the server can delete its networks and security groups. What cannot be done within some seconds, since Neutron or the cell does not answer or a host may
   * still have a guest, is left to `settle`. So is everything while many servers end at a time, and for some seconds after Neutron was silent: however many
   * callers ask for deleted servers, few of them wait for a Neutron that hangs. Never rejects.
   */
  async endNow({ uuid, deletedAtMs }: Pick<Server, "uuid" | "deletedAtMs">): Promise<void> {
    if (deletedAtMs === null || this.#clock.now() - deletedAtMs > ENDED_LATELY_MS) return;
    if (this.#clock.monotonic() < this.#silentUntilMs) return;
    let ending = this.#ending.get(uuid);
    if (ending === undefined) {
      if (this.#ending.size >= ENDING_MAX) return;
      ending = this.#endOne(uuid).finally(() => this.#ending.delete(uuid));
      this.#ending.set(uuid, ending);
    }
    await withDeadline(ending, END_WAIT_MS, "releasing ports", this.#clock).catch((error: unknown) => {
      if (isSilence(error)) this.#silentUntilMs = this.#clock.monotonic() + SILENT_MS;
      this.#events.portsNotSwept(error);
    });
  }

  async #endOne(serverUuid: string): Promise<void> {
    // Neutron may fail one of two calls that delete a port at the same time, and the answer would come before the other call has deleted it.
    await this.#settling.get(serverUuid)?.catch(() => {});
    const [note] = await this.#notes.notes([serverUuid]);
    if (note !== undefined) await this.#settleOne(note, true);
  }

  /** The servers that are gone since their notes wait. A delay that has grown while they lived must not hold up their ports. */
  async #endedAmong(page: readonly DueNote[]): Promise<ReadonlySet<string>> {
    const waiting = page.filter((note) => this.#waits.isWaiting(keyOf(note)));
    if (waiting.length === 0) return new Set();
    const records = await this.#store.requests(waiting.map(({ serverUuid }) => serverUuid));
    return new Set(records.filter(isOver).map(({ serverUuid }) => serverUuid));
  }

  /** A note that Neutron refuses must not hold up the others. One whose ports are being released for a caller is left to that, for the same reason as in `#endOne`. */
  async #trySettling(note: DueNote, isEnded: boolean): Promise<void> {
    if (this.#ending.has(note.serverUuid)) return;
    const settling = this.#settleOne(note, isEnded);
    this.#settling.set(note.serverUuid, settling);
    try {
      await settling;
    } catch (error) {
      if (!(error instanceof NetworkingError) || error.code === "unreachable") throw error;
      this.#events.portsNotSwept(error);
    } finally {
      this.#settling.delete(note.serverUuid);
    }
  }

  async #settleOne(note: DueNote, isEnded: boolean): Promise<void> {
    const { serverUuid, keptPorts, deletedPorts, version } = note;
    const key = keyOf(note);
    if (!isEnded && this.#waits.isWaiting(key)) return;
    const ports = await this.#portsOf(serverUuid);
    if (ports.kind === "unknown") return;
    if (ports.kind === "left") return this.#waits.wait(key, WAIT_MS);
    const named = ports.kind === "gone" ? [] : ports.named;
    // A call that has begun to change the ports since then has raised the version before, and its ports are left to it.
    const mayRelease = async () => (await this.#notes.notes([serverUuid]))[0]?.version === version;
    if (!(await releasePorts(this.#neutron.networking, serverUuid, { keptPorts, named }, mayRelease))) return;
    // Neutron may still make a port, or give one to the server, for a call that has given up. The note stays until it cannot any longer.
    if (ports.kind === "gone" && note.calledAgoMs !== null && note.calledAgoMs < OPEN_MS)
      return this.#waits.wait(key, WAIT_MS);
    if (ports.kind === "gone") await this.#notes.removeNotes([note]);
    else if (ports.known !== null && !(await this.#refresh(ports.known, deletedPorts, mayRelease)))
      return this.#waits.wait(key, WAIT_MS);
    else await this.#notes.settleNotes([note]);
    this.#waits.end(key);
  }

  async #refresh(known: Known, deletedPorts: readonly string[], mayRelease: () => Promise<boolean>): Promise<boolean> {
    const isFresh = await refreshPorts(this.#neutron, known, deletedPorts);
    const mayEnd = async () => (await mayRelease()) && (await restsOn(known));
    // The addresses of a server that waits for its confirmation are compared once more, and its bindings end all the same.
    return (await endPreparedBindings(this.#neutron.networking, known.server, mayEnd)) && isFresh;
  }

  async #portsOf(serverUuid: string): Promise<ServersPorts> {
    let [record] = await this.#store.requests([serverUuid]);
    if (record === undefined) {
      // Its call ended before the server was accepted. Now it can never be.
      await closeServer(this.#store, serverUuid);
      [record] = await this.#store.requests([serverUuid]);
    }
    if (record === undefined) return { kind: "unknown" };
    if (record.cell !== null) return this.#portsInCell(record, record.cell);
    if (record.state === "cancelled") return { kind: "unknown" };
    return isOver(record) ? { kind: "gone" } : livingOf(record);
  }

  async #portsInCell(record: RequestRecord, cell: string): Promise<ServersPorts> {
    const uuids = [record.serverUuid];
    const client = this.#cells.get(cell);
    const answer = await client?.operations(async (store) => ({
      servers: await store.servers(uuids),
      left: await store.guestsLeft(uuids),
    }));
    if (client === undefined || answer?.kind !== "answer") return { kind: "unknown" };
    const [server = null] = answer.value.servers;
    const guestLeft = answer.value.left[0] ?? true;
    // The cell has deleted it for good, and the API database has perhaps not noted that yet.
    const isCancelled = record.state === "cancelled";
    const isGone = isOver(record) || (isCancelled && server?.status === "DELETED");
    if (isCancelled && !isGone) return { kind: "unknown" };
    // A build that failed leaves a server without a host. It can never get one.
    const hasFailed = server !== null && server.status === "ERROR" && server.host === null && server.taskState === null;
    if (isGone || hasFailed) return { kind: guestLeft ? "left" : "gone" };
    if (server === null) return livingOf(record);
    if (server.status === "DELETED") return { kind: "unknown" };
    const named = server.spec.ports.map(({ portId }) => portId);
    return { kind: "living", named, known: { record, cell: client, server } };
  }
}

/** Whether the server still is at rest on the host on which it was found. Not if its cell does not say so. */
async function restsOn({ cell, server: { uuid, host } }: Known): Promise<boolean> {
  const answer = await cell.operations((store) => store.servers([uuid]));
  const [present] = answer.kind === "answer" ? answer.value : [];
  return present?.host === host && present.taskState === null;
}

/** A note that is opened again has another version, so it is looked at at once. */
const keyOf = ({ serverUuid, version }: DueNote): string => `${serverUuid} ${version}`;

const isSilence = (error: unknown): boolean =>
  error instanceof DeadlineError || (error instanceof NetworkingError && error.code === "unreachable");

const isOver = ({ state }: RequestRecord): boolean => state === "deleted" || state === "failed";

const livingOf = ({ spec }: RequestRecord): ServersPorts => ({
  kind: "living",
  named: spec.ports.map(({ portId }) => portId),
  known: null,
});
