import type { ApiStore } from "../../../core/stores/api/api-store.ts";
import type { DueNote, OpenedNote, PortNote, PortNoteStore } from "../../../core/stores/api/port-note-store.ts";
import type { Clock } from "../../../runtime/clock.ts";

interface KeptNote {
  readonly keptPorts: readonly string[];
  readonly deletedPorts: readonly string[];
  readonly version: number;
  readonly openSinceMs: number | null;
  readonly calledAtMs: number | null;
}

/** The in-process twin of the table of notes. It works over the store that holds the requests. */
export class MemoryPortNoteStore implements PortNoteStore {
  readonly #notes = new Map<string, KeptNote>();
  readonly #clock: Pick<Clock, "now">;
  readonly #requests: Pick<ApiStore, "requests">;

  constructor(clock: Pick<Clock, "now">, deps: { readonly requests: Pick<ApiStore, "requests"> }) {
    this.#clock = clock;
    this.#requests = deps.requests;
  }

  async openNotes(notes: readonly PortNote[]): Promise<readonly OpenedNote[]> {
    return notes.map(({ serverUuid, keptPorts, deletedPorts = [] }) => {
      const before = this.#notes.get(serverUuid);
      const version = (before?.version ?? 0) + 1;
      const kept = [...new Set([...(before?.keptPorts ?? []), ...keptPorts])];
      const deleted = [...new Set([...(before?.deletedPorts ?? []), ...deletedPorts])];
      const openSinceMs = this.#clock.now();
      this.#notes.set(serverUuid, {
        ...{ keptPorts: kept, deletedPorts: deleted, version, openSinceMs, calledAtMs: openSinceMs },
      });
      return { serverUuid, version, wasOpen: before !== undefined && before.openSinceMs !== null };
    });
  }

  async settleNotes(notes: Parameters<PortNoteStore["settleNotes"]>[0]): Promise<void> {
    for (const { serverUuid, version } of notes) {
      const note = this.#notes.get(serverUuid);
      const settled = { deletedPorts: [], openSinceMs: null, calledAtMs: null };
      if (note?.version === version) this.#notes.set(serverUuid, { ...note, ...settled });
    }
  }

  async removeNotes(notes: Parameters<PortNoteStore["removeNotes"]>[0]): Promise<void> {
    for (const { serverUuid, version } of notes)
      if (this.#notes.get(serverUuid)?.version === version) this.#notes.delete(serverUuid);
  }

  async notes(serverUuids: readonly string[]): Promise<readonly DueNote[]> {
    return [...new Set(serverUuids)].flatMap((serverUuid) => {
      const note = this.#notes.get(serverUuid);
      return note === undefined ? [] : [this.#dueOf(serverUuid, note)];
    });
  }

  async failServers(serverUuids: readonly string[]): Promise<void> {
    for (const serverUuid of serverUuids) this.#end(serverUuid, this.#notes.get(serverUuid)?.openSinceMs ?? undefined);
  }

  async endServers(serverUuids: readonly string[]): Promise<void> {
    for (const serverUuid of serverUuids) this.#end(serverUuid);
  }

  async sweepNotes(after: string | null, limit: number): Promise<string | null> {
    const later = [...this.#notes.keys()].filter((uuid) => after === null || uuid > after);
    const page = later.toSorted().slice(0, limit);
    for (const { serverUuid, state } of await this.#requests.requests(page))
      if (state === "deleted" || state === "failed") this.#end(serverUuid);
    return page.length < limit ? null : (page.at(-1) ?? null);
  }

  async dueNotes(openMs: number, after: string | null, limit: number): Promise<readonly DueNote[]> {
    return [...this.#notes]
      .filter(([uuid, { openSinceMs }]) => {
        const isDue = openSinceMs !== null && openSinceMs < this.#clock.now() - openMs;
        return isDue && (after === null || uuid > after);
      })
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([uuid, note]) => this.#dueOf(uuid, note));
  }

  #end(serverUuid: string, openSinceMs = Number.NEGATIVE_INFINITY): void {
    const note = this.#notes.get(serverUuid);
    if (note === undefined || note.openSinceMs === Number.NEGATIVE_INFINITY) return;
    this.#notes.set(serverUuid, { ...note, version: note.version + 1, openSinceMs });
  }

  #dueOf(serverUuid: string, { keptPorts, deletedPorts, version, calledAtMs }: KeptNote): DueNote {
    const calledAgoMs = calledAtMs === null ? null : this.#clock.now() - calledAtMs;
    return { id: serverUuid, serverUuid, keptPorts, deletedPorts, version, calledAgoMs };
  }
}
