import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type GuestRecord, readGuestRecord } from "../../../adapters/qemu/guest-record.ts";

const DIR_PREFIX = "guest-";

/** A guest's directory with its record. */
export interface GuestDir {
  readonly dir: string;
  readonly record: GuestRecord;
}

/** The directory of an attempt's guest. Attempt ids have a slash. Everything else that is unusual in a file name is escaped. */
export function guestDirOf(instancesPath: string, attemptId: string): string {
  const name = encodeURIComponent(attemptId).replaceAll("%2F", "+");
  return join(instancesPath, `${DIR_PREFIX}${name}`);
}

/** All guests of the directory, which may be those of several hosts. Throws a QemuError if a record cannot be read. */
export function guestDirs(instancesPath: string): readonly GuestDir[] {
  return dirsIn(instancesPath).flatMap((dir) => {
    const record = readGuestRecord(dir);
    return record === null ? [] : [{ dir, record }];
  });
}

/** The same as `guestDirs`, with null for each record that cannot be read or is missing. */
export function foundGuestDirs(
  instancesPath: string,
): readonly { readonly dir: string; readonly record: GuestRecord | null }[] {
  return dirsIn(instancesPath).map((dir) => ({ dir, record: foundRecord(dir) }));
}

/** Null for a guest whose record is missing or damaged, which must be possible to remove nevertheless. */
export function foundRecord(dir: string): GuestRecord | null {
  try {
    return readGuestRecord(dir);
  } catch {
    return null;
  }
}

function dirsIn(instancesPath: string): readonly string[] {
  const names = existsSync(instancesPath) ? readdirSync(instancesPath) : [];
  return names.filter((name) => name.startsWith(DIR_PREFIX)).map((name) => join(instancesPath, name));
}
