import {
  type NamedVolume,
  readNamedVolumes,
  readOpenRequests,
  readVolumeHolders,
} from "../adapters/postgres/audit/read-volume-holders.ts";
import { onlyUuids } from "../adapters/postgres/client/store-query.ts";
import {
  type AuditedAttachment,
  type AuditedHolder,
  checkCinder,
  HELD_STATUSES,
  pairKey,
  unnamedVolumes,
} from "../core/audit/check-cinder.ts";
import type { Violation } from "../core/audit/violation.ts";
import type { BlockStorage } from "../core/stores/block-storage.ts";

const PAGE_SIZE = 1_000;
/** The servers are searched for at most this many of the volumes that nothing else gives to a server. Nothing is said about the others until these are settled. */
const SEARCHED_MAX = 100;
/** How much of one list of Cinder is read: far more than a cloud has, so that a Cinder whose lists have no end cannot keep the audit for ever, or fill its memory. */
const LISTED_MAX = { pages: 20_000, entries: 5_000_000 };
const NOT_ADMIN =
  "the user of BERTH_KEYSTONE_USER is no admin of Cinder, which therefore lists only the volumes and attachments of the user's own project: give the user the role admin, as the apis' user has it, or name another user";

/** The Block Storage service with which the servers' volumes are compared. */
export interface AuditedStorage {
  readonly storage: Pick<BlockStorage, "attachments" | "volumesWithStatus">;
  /** Whether other clouds use it, too. */
  readonly isShared: boolean;
  /** Whether its lists have the volumes of all projects, as the audit needs them. */
  seesAllProjects(): Promise<boolean>;
}

/** What the comparison found, or why it could not be made. */
export type CinderReading =
  | {
      readonly kind: "read";
      readonly violations: readonly Violation[];
      readonly attachments: number;
      /** The cells whose servers' volumes could not be read, with the reason. */
      readonly unreadCells: ReadonlyMap<string, string>;
    }
  | { readonly kind: "unread"; readonly reason: string };

/**
 * Compares who has which volume according to Cinder and to the cells. Cinder is read first, and a server that has changed since is not at rest. Cells that
 * cannot be read are left out. Memory: the attachments of Cinder and the ids of the volumes that servers have.
 */
export async function readCinder(
  audited: AuditedStorage,
  {
    apiUrl,
    cells,
  }: { readonly apiUrl: string; readonly cells: readonly { readonly name: string; readonly databaseUrl: string }[] },
  patienceMs: number,
): Promise<CinderReading> {
  const { storage, isShared } = audited;
  try {
    if (!(await audited.seesAllProjects())) return { kind: "unread", reason: NOT_ADMIN };
    const found = await readHeld(storage);
    const attachments = await readAttachments(storage);
    const given = await readNamedVolumes(apiUrl);
    const named = new Set(given.map(({ volumeId }) => volumeId));
    const unnamed = unnamedVolumes({ attachments, held: found, named });
    const late = new Set(unnamed.slice(SEARCHED_MAX));
    const held = new Map([...found].filter(([id]) => !late.has(id)));
    const uuids = onlyUuids([...new Set([...attachments, ...given].map(({ serverUuid }) => serverUuid))]);
    const asked = { servers: uuids, volumes: unnamed.slice(0, SEARCHED_MAX) };
    const read = await Promise.allSettled(
      cells.map(({ name, databaseUrl }) => readVolumeHolders({ cell: name, databaseUrl }, asked, patienceMs)),
    );
    const servers = mergedHolders(read.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])));
    const unreadCells = new Map(
      read.flatMap((one, at) => (one.status === "rejected" ? [[cells[at]!.name, (one.reason as Error).message]] : [])),
    );
    const onTheWay = await readOpenRequests(
      apiUrl,
      uuids.filter((uuid) => !servers.has(uuid)),
    );
    const underWay = pairsUnderWay({ attachments, given, onTheWay });
    const violations = checkCinder({
      ...{ attachments, held, servers, named, underWay, isShared },
      isEveryCellRead: unreadCells.size === 0,
    });
    return { kind: "read", violations, attachments: attachments.length, unreadCells };
  } catch (error) {
    return { kind: "unread", reason: (error as Error).message };
  }
}

/** Nothing is said about a server that two cells have, which is a violation of its own: each of the two may know only some of its volumes. */
function mergedHolders(cells: readonly ReadonlyMap<string, AuditedHolder>[]): ReadonlyMap<string, AuditedHolder> {
  const merged = new Map<string, AuditedHolder>();
  for (const [uuid, holder] of cells.flatMap((one) => [...one])) {
    const other = merged.get(uuid);
    const both = other && {
      ...{ ...holder, isAtRest: false, volumes: [...other.volumes, ...holder.volumes] },
      inDoubt: [...other.inDoubt, ...holder.inDoubt],
    };
    merged.set(uuid, both ?? holder);
  }
  return merged;
}

function pairsUnderWay(facts: {
  readonly attachments: readonly AuditedAttachment[];
  readonly given: readonly NamedVolume[];
  readonly onTheWay: ReadonlySet<string>;
}): ReadonlySet<string> {
  const { attachments, given, onTheWay } = facts;
  const pairs = [
    ...given.filter(({ isUnderWay, serverUuid }) => isUnderWay || onTheWay.has(serverUuid)),
    ...attachments.filter(({ serverUuid }) => onTheWay.has(serverUuid)),
  ];
  return new Set(pairs.map(({ volumeId, serverUuid }) => pairKey(volumeId, serverUuid)));
}

function readAttachments(storage: AuditedStorage["storage"]): Promise<readonly AuditedAttachment[]> {
  return readPages(
    "attachments",
    (after) => storage.attachments({ after, limit: PAGE_SIZE }),
    ({ id, volumeId, serverUuid }) => ({ id, volumeId, serverUuid }),
  );
}

async function readHeld(storage: AuditedStorage["storage"]): Promise<ReadonlyMap<string, string>> {
  const held = new Map<string, string>();
  for (const status of HELD_STATUSES)
    for (const id of await readPages(
      `volumes with the status ${status}`,
      (after) => storage.volumesWithStatus({ status, after, limit: PAGE_SIZE }),
      ({ id }) => id,
    ))
      held.set(id, status);
  return held;
}

/**
 * Reads all pages. Only an empty one is the last, since Cinder may give fewer than it was asked for. Throws if a page has nothing new, or if the list is longer than any
 * cloud's: then what follows is not the rest of the list.
 */
async function readPages<One extends { readonly id: string }, Kept>(
  list: string,
  page: (after: string | null) => Promise<readonly One[]>,
  keep: (one: One) => Kept,
): Promise<readonly Kept[]> {
  const kept = new Map<string, Kept>();
  let after: string | null = null;
  for (let pages = 0; pages < LISTED_MAX.pages && kept.size < LISTED_MAX.entries; pages += 1) {
    const found: readonly One[] = await page(after);
    const last = found.at(-1);
    if (last === undefined) return [...kept.values()];
    const before = kept.size;
    for (const one of found) kept.set(one.id, keep(one));
    if (kept.size === before)
      throw new Error(
        `Cinder's list of ${list} has no end: the page behind ${after} repeats what was listed before. Look whether something between Berth and Cinder, such as a cache, leaves out the parameter marker`,
      );
    after = last.id;
  }
  throw new Error(
    `Cinder's list of ${list} has no end: ${kept.size} were read, on up to ${LISTED_MAX.pages} pages. Look at Cinder's logs, and at what lies between Berth and Cinder`,
  );
}
