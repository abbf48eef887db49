import type { ImageService, UnshelvedImage } from "../../../../core/stores/api/image-service.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { PagedRounds } from "../../paged-rounds.ts";
import type { RequestsPort } from "../../ports.ts";

/** How long a server may wait for a host before its image is left alone: until it is asked to be unshelved again, or ends. */
const UNSHELVING_MS_MAX = 3_600_000;

/** `wait`: look again later. `hide`: the server has its disk on a host. `keep`: its image is the only copy of its disk, or ends with the server. */
export type UnshelvedVerdict = "wait" | "hide" | "keep";

/**
 * Judges the image of a server that was asked to be unshelved. Its users may lose the sight of the image only when the server's cell says that the server
 * rests on a host, or has its disk from another image, which it got there. `isOld`: the server has had its time.
 */
export function judgeUnshelved(
  imageId: string,
  server: Pick<Server, "status" | "host" | "taskState" | "spec"> | null,
  isOld: boolean,
): UnshelvedVerdict {
  if (server === null || server.status === "DELETED") return "keep";
  const isUnshelved = server.host !== null && server.status !== "SHELVED_OFFLOADED" && server.status !== "ERROR";
  if (server.taskState === null && isUnshelved) return "hide";
  if (server.spec.diskImageRef !== imageId) return "hide";
  return isOld ? "keep" : "wait";
}

/**
 * Hides the images of servers that have been unshelved from their users, as Nova deletes them. The moves end in cells, which do not report this, so each
 * image is looked at until its server's cell says what has become of it. A cell that does not answer changes nothing. Every step may be repeated, so any
 * number of apis may do this at a time.
 */
export class UnshelvedImages {
  readonly #images: Pick<ImageService, "hideUnshelved" | "keepShelved">;
  readonly #store: Pick<RequestsPort, "requests">;
  readonly #cells: Cells;
  readonly #clock: Pick<Clock, "now">;
  readonly #rounds: PagedRounds<UnshelvedImage>;

  constructor(deps: {
    readonly images: Pick<ImageService, "unshelving" | "hideUnshelved" | "keepShelved">;
    readonly store: Pick<RequestsPort, "requests">;
    readonly cells: Cells;
    readonly clock: Pick<Clock, "now">;
  }) {
    this.#images = deps.images;
    this.#store = deps.store;
    this.#cells = deps.cells;
    this.#clock = deps.clock;
    this.#rounds = new PagedRounds((after, limit) => deps.images.unshelving(after, limit));
  }

  /** An image that Glance refuses to delete keeps no others. Rejects as the API database and the service of images do. */
  async settle(): Promise<void> {
    await this.#rounds.runEach("images of unshelved servers could not be hidden", async (page) => {
      const found = await this.#look(page);
      return (image) => this.#settleOne(image, found.get(image.shelvedServer));
    });
  }

  /** Resolves with what the cells say about the servers. Null stands for a server that no cell has. Those of cells that do not answer are missing. */
  async #look(page: readonly UnshelvedImage[]): Promise<ReadonlyMap<string, Server | null>> {
    if (page.length === 0) return new Map();
    const records = await this.#store.requests([...new Set(page.map(({ shelvedServer }) => shelvedServer))]);
    const cellOf = new Map(records.map(({ serverUuid, cell }) => [serverUuid, cell]));
    const byCell = Map.groupBy(page, ({ shelvedServer }) => cellOf.get(shelvedServer) ?? null);
    const looks = Array.from(byCell, async ([cell, images]) => {
      const uuids = [...new Set(images.map(({ shelvedServer }) => shelvedServer))];
      const none = { kind: "answer", value: [] } as const;
      const answer = cell === null ? none : await this.#cells.get(cell)?.servers(uuids);
      if (answer?.kind !== "answer") return [];
      const byUuid = new Map(answer.value.map((server) => [server.uuid, server]));
      return uuids.map((uuid) => [uuid, byUuid.get(uuid) ?? null] as const);
    });
    return new Map((await Promise.all(looks)).flat());
  }

  async #settleOne({ id, unshelveAskedAtMs }: UnshelvedImage, server: Server | null | undefined): Promise<void> {
    if (server === undefined) return;
    const isOld = this.#clock.now() - unshelveAskedAtMs > UNSHELVING_MS_MAX;
    // A server that no cell has is deleted, and its image ends with it.
    const verdict = judgeUnshelved(id, server, isOld);
    if (verdict === "hide") await this.#images.hideUnshelved(id);
    if (verdict === "keep") await this.#images.keepShelved(id);
  }
}
