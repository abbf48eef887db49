import { isDeepStrictEqual } from "node:util";
import type { VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import type { BlockStorage, CinderAttachment } from "../../../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../../../core/stores/block-storage-error.ts";
import { OWN_NAME } from "../../../../core/stores/networking.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { Ticker } from "../../../../runtime/ticker.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import type { RequestsPort } from "../../ports.ts";
import { attachmentOfServer } from "./find-attachment.ts";

/** How many of Cinder's attachments one round looks at, and how many pairs of a server and a volume it looks into. Cinder may answer with fewer. */
const PAGE_SIZE = 1_000;
const PAIRS_MAX = 50;
/** How many attachments are remembered that wait for their time. Beyond that they are forgotten, and wait again. */
const YOUNG_MAX = 10_000;
/** How many rounds in a row may fail to get the same page before the list begins again. If each failure did that, a Cinder that often fails would never be asked for the last pages. */
const PAGE_TRIES = 5;
/** The status of an attachment whose host Cinder shows. */
const FINISHED = "attached";
/** The status of a volume that Cinder fills with an image. */
const FILLING = "downloading";

interface SweeperDeps {
  readonly storage: BlockStorage;
  readonly volumes: Pick<VolumeStore, "volumes" | "setAttachmentId">;
  readonly store: Pick<RequestsPort, "requests">;
  readonly cells: Cells;
  readonly events: Pick<ApiEvents, "volumesNotSettled" | "attachmentUnknown">;
}

/** Where a server rests, and whether it has the volume, or may have it in the place of its own. */
interface Rest {
  readonly host: string | null;
  readonly has: boolean;
}

interface Pair {
  readonly volumeId: string;
  readonly serverUuid: string;
}

const keyOf = ({ volumeId, serverUuid }: Pair): string => `${volumeId} ${serverUuid}`;

/**
 * Compares Cinder's attachments with those that the API database names, page by page, and ends the ones that no guest has: of a host that a server has left,
 * or of a volume that the server does not have. An attachment is ended only if the server's cell says that the server rests on another host, or has no such
 * volume, and that no guest of it is left anywhere. Of a volume that the server does not have, it must have been seen so for `patienceMs`: the call that has reserved it may only now have
 * its operation begun, and an end that Cinder carries out late would take the volume from the guest. An attachment of the server's own host that is connected and not finished is finished. Attachments of
 * servers that Berth does not know belong to somebody else. Every step may be repeated, so any number of apis may do this at a time.
 */
export class AttachmentSweeper {
  readonly #deps: SweeperDeps;
  readonly #ticker: Ticker;
  /** The last attachment of the page before. */
  #after: string | null = null;
  /** How many rounds in a row have not got the page that follows it. */
  #missed = 0;
  /** The last pair of the page that was looked into, in their order, if the page has more of them than one round looks into. */
  #settledTo = "";
  /** When each attachment was first seen that no server seems to have, by the monotonic clock. */
  readonly #strays = new Map<string, number>();
  readonly #clock: Clock;
  readonly #patienceMs: number;

  constructor(
    deps: SweeperDeps & { readonly clock: Clock },
    options: { readonly pollMs: number; readonly patienceMs: number },
  ) {
    this.#deps = deps;
    this.#clock = deps.clock;
    this.#patienceMs = options.patienceMs;
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

  /** Looks at one page of attachments, or goes on with the page of the round before. Rejects as Cinder and the API database do. */
  async sweep(): Promise<void> {
    const page = await this.#page();
    const pairs = (await this.#unnamed(page)).filter(([key]) => key > this.#settledTo);
    for (const [key, pair] of pairs.slice(0, PAIRS_MAX)) {
      // A pair for which this fails waits until its page comes again, so that it does not hold up the others.
      this.#settledTo = key;
      await this.#settle(pair);
    }
    if (pairs.length <= PAIRS_MAX) this.#goOn(page.at(-1)?.id ?? null);
  }

  #goOn(after: string | null): void {
    this.#missed = 0;
    this.#after = after;
    this.#settledTo = "";
  }

  /**
   * The page whose turn it is. Only an empty one is the last, because Cinder may give fewer attachments than it was asked for (`osapi_max_limit`). It
   * refuses the question for what follows an attachment that has ended, and then the list begins again, as it does after several failures in a row.
   */
  async #page(): Promise<readonly CinderAttachment[]> {
    const { storage } = this.#deps;
    const after = this.#after;
    try {
      const page = await storage.attachments({ after, limit: PAGE_SIZE });
      this.#missed = 0;
      if (page.length > 0 || after === null) return page;
    } catch (error) {
      const isRefused = error instanceof BlockStorageError && error.code === "bad-answer";
      this.#missed += 1;
      if (after === null || !isRefused) {
        if (this.#missed >= PAGE_TRIES) this.#goOn(null);
        throw error;
      }
    }
    this.#goOn(null);
    return storage.attachments({ after: null, limit: PAGE_SIZE });
  }

  /** The pairs of the page that have an attachment which the database does not name, of servers that Berth knows, in the order of their keys. */
  async #unnamed(page: readonly CinderAttachment[]): Promise<readonly (readonly [string, Pair])[]> {
    const { volumes, store } = this.#deps;
    // The database is read after Cinder, and a row names the server before Cinder makes the attachment. So an attachment of a server that the row
    // does not name has ended. `#settle` looks into one that has another id than the row.
    const rows = new Map(
      (await volumes.volumes([...new Set(page.map(({ volumeId }) => volumeId))])).map(({ id, attachment }) => [
        keyOf({ volumeId: id, serverUuid: attachment?.serverUuid ?? "" }),
        attachment,
      ]),
    );
    const unnamed = page.filter(({ id, volumeId, serverUuid, status }) => {
      const attachment = rows.get(keyOf({ volumeId, serverUuid })) ?? null;
      const isNamed = attachment?.attachmentId === id;
      const isUnfinished = attachment?.phase === "attached" && status !== FINISHED;
      return serverUuid !== "" && (!isNamed || isUnfinished);
    });
    if (unnamed.length === 0) return [];
    const servers = [...new Set(unnamed.map(({ serverUuid }) => serverUuid))];
    const records = await store.requests(servers);
    const known = new Set(records.filter(({ cell }) => cell !== null).map(({ serverUuid }) => serverUuid));
    const pairs = new Map<string, Pair>();
    for (const { volumeId, serverUuid } of unnamed)
      if (known.has(serverUuid)) pairs.set(keyOf({ volumeId, serverUuid }), { volumeId, serverUuid });
    return [...pairs].toSorted(([one], [other]) => (one < other ? -1 : 1));
  }

  async #settle(pair: Pair): Promise<void> {
    const { storage, volumes, store, events } = this.#deps;
    const { volumeId, serverUuid } = pair;
    const [record] = await store.requests([serverUuid]);
    const cell = record?.cell ?? null;
    if (cell === null) return;
    const attachments = await storage.attachments(pair);
    const named = (await attachmentOfServer(volumes, serverUuid, volumeId))?.attachment ?? null;
    if (named !== null && named.phase !== "attached") return;
    const rest = await this.#rest(cell, pair);
    if (rest === null) return;
    const isStill = async () => isDeepStrictEqual(await this.#rest(cell, pair), rest);
    if (named === null && rest.has) events.attachmentUnknown(pair);
    else if (named === null)
      await this.#end(
        attachments.filter(({ id }) => this.#isOld(id)),
        pair,
        isStill,
      );
    // If the server is gone, the settler ends what the database names.
    else if (rest.has && rest.host !== null) await this.#keepOnly(rest.host, attachments, pair, isStill);
  }

  /** Whether the attachment has been a stray for long enough. */
  #isOld(id: string): boolean {
    const nowMs = this.#clock.monotonic();
    const sinceMs = this.#strays.get(id) ?? nowMs;
    const isOld = nowMs - sinceMs >= this.#patienceMs;
    if (isOld) this.#strays.delete(id);
    else if (this.#strays.size < YOUNG_MAX || this.#strays.has(id)) this.#strays.set(id, sinceMs);
    else this.#strays.clear();
    return isOld;
  }

  /** What the cell says of a server without an operation, and without a guest that is left anywhere else; null otherwise, and if it does not answer. */
  async #rest(cellName: string, { volumeId, serverUuid }: Pair): Promise<Rest | null> {
    const answer = await this.#deps.cells.get(cellName)?.operations(async (store) => ({
      server: (await store.servers([serverUuid]))[0] ?? null,
      isLeft: (await store.guestsLeft([serverUuid]))[0] ?? true,
    }));
    if (answer?.kind !== "answer" || answer.value.isLeft) return null;
    const { server } = answer.value;
    if (server === null || server.status === "DELETED") {
      // Cinder is to be told first how the replacement of the server's volume by this one has ended.
      const replaced = server?.spec.volumes.find(({ replacedBy }) => replacedBy === volumeId);
      const isOwed =
        replaced !== undefined &&
        (await attachmentOfServer(this.#deps.volumes, serverUuid, replaced.volumeId)) !== null;
      return isOwed ? null : { host: null, has: false };
    }
    if (server.taskState !== null || server.status === "VERIFY_RESIZE") return null;
    return {
      host: server.host,
      has: server.spec.volumes.some((volume) => [volume.volumeId, volume.replacedBy].includes(volumeId)),
    };
  }

  async #keepOnly(
    host: string,
    attachments: readonly CinderAttachment[],
    pair: Pair,
    isStill: () => Promise<boolean>,
  ): Promise<void> {
    const { storage, volumes } = this.#deps;
    const { volumeId, serverUuid } = pair;
    const volume = await storage.volume(volumeId, OWN_NAME);
    const here = volume?.attachedTo.filter((one) => one.serverUuid === serverUuid && one.host === host) ?? [];
    const [home] = here;
    if (home === undefined) return this.#finish(attachments, isStill);
    await volumes.setAttachmentId(volumeId, { serverUuid, attachmentId: home.attachmentId });
    // Two conductors, one of which has lost the task, may both have connected the volume to this host. The end of either could take it away from the guest.
    const others = attachments.filter(({ id }) => !here.some(({ attachmentId }) => attachmentId === id));
    await this.#end(others, pair, isStill);
  }

  /**
   * Finishes the attachments that are connected. A driver that was slow to connect a volume may set an attachment back after it was finished, and then Cinder
   * does not show its host. The next round sees which host it has.
   */
  async #finish(attachments: readonly CinderAttachment[], isStill: () => Promise<boolean>): Promise<void> {
    for (const { id, status, connection } of attachments) {
      if (status === FINISHED || connection === null) continue;
      if (!(await isStill())) return;
      await this.#deps.storage.complete(id);
    }
  }

  /**
   * The cell is asked again before each attachment, because an operation that has begun since may use what an earlier one has left on its host. Cinder is asked
   * again after that, because it gives the attachments of a migration's target to the volume that the server has, and a migration that has ended before the cell
   * was asked has done so by then. A volume that Cinder fills with an image keeps its attachments, since Cinder would otherwise write the image over what the volume's next owner stores.
   */
  async #end(attachments: readonly CinderAttachment[], pair: Pair, isStill: () => Promise<boolean>): Promise<void> {
    const { storage } = this.#deps;
    for (const { id } of attachments) {
      if ((await storage.volume(pair.volumeId, OWN_NAME))?.status === FILLING || !(await isStill())) return;
      if ((await storage.attachment(id))?.volumeId === pair.volumeId) await storage.deleteAttachment(id);
    }
  }
}
