import type { VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import type { BlockStorage, CinderAttachment } from "../../../../core/stores/block-storage.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { Ticker } from "../../../../runtime/ticker.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import { OWN_NAME } from "../../network/neutron-deps.ts";
import type { RequestsPort } from "../../ports.ts";

/** How many of Cinder's attachments one round looks at, and how many servers it asks about. */
const PAGE_SIZE = 1_000;
const PAIRS_MAX = 50;

interface SweeperDeps {
  readonly storage: BlockStorage;
  readonly volumes: Pick<VolumeStore, "volumes" | "setAttachmentId">;
  readonly store: Pick<RequestsPort, "requests">;
  readonly cells: Cells;
  readonly events: Pick<ApiEvents, "volumesNotSettled" | "attachmentUnknown">;
}

interface Pair {
  readonly volumeId: string;
  readonly serverUuid: string;
}

/**
 * Compares Cinder's attachments with those that the API database names, page by page, and ends the ones that no guest has: of a host that a server has left,
 * or of a volume that the server does not have. An attachment is ended only if the server's cell says that the server rests on another host, or has
 * no such volume, and that no guest of it is left anywhere. Attachments of servers that Berth does not know belong to somebody else. Every step may be
 * repeated, so any number of apis may do this at a time.
 */
export class AttachmentSweeper {
  readonly #deps: SweeperDeps;
  readonly #ticker: Ticker;
  #after: string | null = null;

  constructor(deps: SweeperDeps & { readonly clock: Clock }, options: { readonly pollMs: number }) {
    this.#deps = deps;
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: options.pollMs,
      work: () => this.sweep(),
      onError: (error) => deps.events.volumesNotSettled(error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /** Looks at one page of attachments. Rejects as Cinder and the API database do. */
  async sweep(): Promise<void> {
    const { storage, volumes } = this.#deps;
    const page = await storage.attachments({ after: this.#after, limit: PAGE_SIZE });
    this.#after = page.length < PAGE_SIZE ? null : (page.at(-1)?.id ?? null);
    // The database is read after Cinder, and names an attachment before Cinder makes it. So what it does not name then has ended.
    const rows = new Map(
      (await volumes.volumes([...new Set(page.map(({ volumeId }) => volumeId))])).map((row) => [row.id, row]),
    );
    const pairs = new Map<string, Pair>();
    for (const { id, volumeId, serverUuid } of page) {
      const attachment = rows.get(volumeId)?.attachment ?? null;
      const isNamed = attachment?.serverUuid === serverUuid && attachment.attachmentId === id;
      if (serverUuid !== "" && !isNamed) pairs.set(`${volumeId} ${serverUuid}`, { volumeId, serverUuid });
    }
    for (const pair of [...pairs.values()].slice(0, PAIRS_MAX)) await this.#settle(pair);
  }

  async #settle(pair: Pair): Promise<void> {
    const { storage, volumes, store, cells, events } = this.#deps;
    const { volumeId, serverUuid } = pair;
    const [record] = await store.requests([serverUuid]);
    if (record === undefined || record.cell === null) return;
    const attachments = await storage.attachments(pair);
    const [row] = await volumes.volumes([volumeId]);
    const named = row?.attachment?.serverUuid === serverUuid ? row.attachment : null;
    if (named !== null && named.phase !== "attached") return;
    const answer = await cells.get(record.cell)?.operations(async (cell) => ({
      server: (await cell.servers([serverUuid]))[0] ?? null,
      isLeft: (await cell.guestsLeft([serverUuid]))[0] ?? true,
    }));
    if (answer?.kind !== "answer" || answer.value.isLeft) return;
    const { server } = answer.value;
    if (server === null || server.status === "DELETED") {
      // The settler ends those that the database names.
      if (named === null) await this.#end(attachments);
      return;
    }
    if (server.taskState !== null || server.status === "VERIFY_RESIZE") return;
    const has = server.spec.volumes.some((volume) => volume.volumeId === volumeId);
    if (named === null && has) events.attachmentUnknown(pair);
    else if (named === null) await this.#end(attachments);
    else if (has && server.host !== null) await this.#keepOnly(server.host, attachments, pair);
  }

  async #keepOnly(host: string, attachments: readonly CinderAttachment[], pair: Pair): Promise<void> {
    const { storage, volumes } = this.#deps;
    const { volumeId, serverUuid } = pair;
    const volume = await storage.volume(volumeId, OWN_NAME);
    const home = volume?.attachedTo.find((one) => one.serverUuid === serverUuid && one.host === host);
    if (home === undefined) return;
    await volumes.setAttachmentId(volumeId, { serverUuid, attachmentId: home.attachmentId });
    await this.#end(attachments.filter(({ id }) => id !== home.attachmentId));
  }

  async #end(attachments: readonly CinderAttachment[]): Promise<void> {
    for (const { id } of attachments) await this.#deps.storage.deleteAttachment(id);
  }
}
