/** A path that could not be read and the reason, so that a report can say why a value is unknown. */
export interface UnreadFile {
  readonly path: string;
  readonly reason: string;
}

/**
 * A copy of the files of /proc and /sys that describe a Linux host. Paths are absolute on the host, without a sysroot before them. A path
 * that is in none of the maps did not exist or could not be read; `unread` lists those that existed and could not be read.
 */
export interface HostFiles {
  readonly texts: ReadonlyMap<string, string>;
  /** Names of the entries in a directory. */
  readonly entries: ReadonlyMap<string, readonly string[]>;
  /** The last part of a link's target, for example the name of a device's driver. */
  readonly links: ReadonlyMap<string, string>;
  readonly unread: readonly UnreadFile[];
  /** The size of the file system that holds the guests' disks, or null when it could not be determined. */
  readonly diskBytes: number | null;
}

/** Receives one sentence for each value that could not be read or that contradicts another one. */
export type Warn = (warning: string) => void;

/** The numbers N of the directory's entries named `<prefix>N`, in ascending order, or null when there is no such directory. */
export function numberedEntries(files: HostFiles, directory: string, prefix: string): readonly number[] | null {
  const names = files.entries.get(directory);
  if (names === undefined) return null;
  const numbers = names
    .filter((name) => name.startsWith(prefix) && /^\d{1,6}$/.test(name.slice(prefix.length)))
    .map((name) => Number(name.slice(prefix.length)));
  return [...new Set(numbers)].sort((a, b) => a - b);
}
