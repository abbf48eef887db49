import { basename } from "node:path";
import type { GuestRecord } from "../../../adapters/qemu/guest-record.ts";
import type { HostedGuest } from "../driver.ts";
import type { GuestName } from "../journal.ts";
import type { FoundGuestDir, GuestDirs } from "./guest-dirs.ts";

/**
 * The guests of these hosts, by their records. A known guest whose record cannot be read is left out. Of any other one it must be known whose it is: rejects if its record cannot be read now. Rejects, too, if
 * another directory has taken the place of the opened one, such as an empty mount point. `onDamaged` is called for each directory whose record is damaged, since nobody knows whose guest that is. A copy that
 * somebody has made of a guest's directory is no guest.
 */
export async function hostedGuests(
  dirs: GuestDirs,
  hosts: ReadonlySet<string>,
  { known, onDamaged }: { readonly known: readonly GuestName[]; readonly onDamaged: (dir: string) => void },
): Promise<readonly HostedGuest[]> {
  await dirs.open();
  const ofKnown = new Set(known.map(({ attemptId }) => basename(dirs.dirOf(attemptId))));
  const found = await dirs.found();
  const read = async ({ dir, record }: FoundGuestDir): Promise<GuestRecord | null> => {
    if (record !== null || ofKnown.has(basename(dir))) return record;
    const again = await dirs.foundRecord(dir);
    if (again === null && (await dirs.hasRecord(dir))) onDamaged(dir);
    return again;
  };
  const guestIn = async (at: FoundGuestDir) => {
    const record = await read(at);
    const isHere =
      record !== null && hosts.has(record.host) && basename(dirs.dirOf(record.attemptId)) === basename(at.dir);
    return isHere ? [hostedGuest(record)] : [];
  };
  const hosted = (await Promise.all(found.map(guestIn))).flat();
  await dirs.confirm();
  return hosted;
}

function hostedGuest({
  host,
  serverUuid,
  attemptId,
  hasRun,
  isUnfinished = false,
  listensAt,
  volumes = [],
}: GuestRecord): HostedGuest {
  const guest = { host, serverUuid, attemptId, volumeIds: volumes.map(({ volumeId }) => volumeId) };
  if (hasRun) return { ...guest, stage: "has-run" };
  if (isUnfinished) return { ...guest, stage: "half-built" };
  return { ...guest, stage: "prepared", ...(listensAt !== "" && { listensAt }) };
}
