import { closeSync, fsyncSync, openSync } from "node:fs";

/** Makes a rename or a new file durable, which requires that its directory is synced. Throws if that fails. */
export function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
