import type { CinderSnapshot } from "../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../core/stores/block-storage-error.ts";
import { listedSnapshots } from "./cinder-documents.ts";
import type { NeighbourAnswer } from "./neighbour-client.ts";
import { documentFields } from "./read-document.ts";

/** Cinder gives fewer in one page if its `osapi_max_limit` is lower. */
const PAGE_SIZE = 1_000;
const PAGES_MAX = 20;

/**
 * Reads all snapshots of a volume, page by page. A page that lacks some must not pass as the whole list, since what is not in it counts as deleted. Throws a `BlockStorageError` if the
 * pages do not end.
 */
export async function readSnapshotsOf(
  volumeId: string,
  ask: (path: string) => Promise<NeighbourAnswer>,
): Promise<readonly CinderSnapshot[]> {
  const query = new URLSearchParams({ all_tenants: "1", volume_id: volumeId, limit: `${PAGE_SIZE}` });
  const found: CinderSnapshot[] = [];
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const { body } = await ask(`/snapshots/detail?${query}`);
    const page = listedSnapshots(body);
    // Snapshots are deleted because they are in this list, so it does not rest on Cinder's filter alone.
    found.push(...page.filter((snapshot) => snapshot.volumeId === volumeId));
    const last = page.at(-1);
    if (last === undefined || !hasNext(body)) return found;
    query.set("marker", last.id);
  }
  throw new BlockStorageError(
    "bad-answer",
    `Cinder's list of the snapshots of volume ${volumeId} has more than ${PAGES_MAX} pages: delete some of them, or raise Cinder's osapi_max_limit`,
  );
}

function hasNext(body: unknown): boolean {
  const { snapshots_links: links } = documentFields(body);
  return Array.isArray(links) && links.map(documentFields).some(({ rel }) => rel === "next");
}
