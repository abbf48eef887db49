import { readdirSync, readlinkSync } from "node:fs";

/** The files that this process has open. */
export const openFiles = (): readonly string[] =>
  readdirSync("/proc/self/fd").flatMap((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`);
    } catch {
      // It was closed meanwhile, such as that of this very list.
      return [];
    }
  });
