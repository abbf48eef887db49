import type { Deletion } from "../../../../core/stores/api/api-store.ts";
import type { PortNoteStore } from "../../../../core/stores/api/port-note-store.ts";
import type { PortStore } from "../../../../core/stores/api/port-store.ts";
import type { VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../../../runtime/batcher.ts";
import type { ApiEvents } from "../../events.ts";
import type { RequestsPort } from "../../ports.ts";

/** Notes in the API database which servers are gone from their cells. Concurrent notes share a transaction. */
export class DeletionMarker {
  readonly #marks: Batcher<Deletion, void>;
  readonly #events: ApiEvents;
  readonly #portsOfFailed: Pick<PortNoteStore, "failServers"> | null;
  readonly #pending = new Set<Promise<void>>();

  constructor(deps: {
    readonly store: Pick<RequestsPort, "markDeleted">;
    readonly events: ApiEvents;
    /** The ports that end with their servers; null without networks. */
    readonly networkPorts: Pick<PortStore, "endServers"> | null;
    /** The volumes whose attachments end with their servers; null without volumes. */
    readonly volumes: Pick<VolumeStore, "sweepEnded"> | null;
    /** The ports that end with a failed build already; null without Neutron. */
    readonly portsOfFailed: Pick<PortNoteStore, "failServers"> | null;
  }) {
    this.#events = deps.events;
    this.#portsOfFailed = deps.portsOfFailed;
    this.#marks = new Batcher({
      run: async (deletions) => {
        await deps.store.markDeleted(deletions);
        const servers = deletions.map(({ serverUuid }) => serverUuid);
        // The sweeps of ports and volumes end them if this fails.
        await deps.networkPorts?.endServers(servers);
        await deps.volumes?.sweepEnded({ servers });
        return deletions.map((): void => undefined);
      },
      maxItems: 1000,
      spacingMs: COMMIT_SPACING_MS,
    });
  }

  /** Notes the deletion, and resolves when the note is stored. */
  mark(cell: string | null, serverUuid: string): Promise<void> {
    return this.#marks.submit({ cell, serverUuid });
  }

  /** Notes that operations or builds of these servers have failed, so that the ports of servers without a host can be released. */
  async noteFailed(serverUuids: readonly string[]): Promise<void> {
    if (serverUuids.length > 0) await this.#portsOfFailed?.failServers(serverUuids);
  }

  /** Notes the deletion without waiting. If the note fails, the schedulers' sweep makes it. */
  markSoon(cell: string | null, serverUuid: string): void {
    const marked = this.mark(cell, serverUuid)
      .catch((error: unknown) => this.#events.markFailed(serverUuid, error))
      .finally(() => this.#pending.delete(marked));
    this.#pending.add(marked);
  }

  async settle(): Promise<void> {
    await Promise.all(this.#pending);
  }
}
