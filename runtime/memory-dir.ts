import { statfsSync } from "node:fs";

/** Where Linux has a file system in memory that every account may write to. */
const SHARED_MEMORY = "/dev/shm";
/** The type of such a file system, from linux/magic.h. */
const TMPFS_MAGIC = 0x0102_1994;
/** Containers often get only 64 MiB there. */
const FREE_BYTES_MIN = 4 * 2 ** 30;

/** A directory whose files are kept in memory, or null when this machine has none with room for a database. */
export function memoryDir(): string | null {
  try {
    const { type, bavail, bsize } = statfsSync(SHARED_MEMORY);
    return type === TMPFS_MAGIC && bavail * bsize >= FREE_BYTES_MIN ? SHARED_MEMORY : null;
  } catch {
    return null;
  }
}
