import { appendFile, open, stat, truncate } from "node:fs/promises";

/**
 * Cuts a log that another process appends to down to its end when it is longer than twice `keepBytes`. Text that is appended meanwhile may come
 * before the kept end. A log that does not exist is left alone.
 */
export async function trimLog(path: string, keepBytes: number): Promise<void> {
  const found = await stat(path).catch(() => null);
  if (found === null || found.size <= 2 * keepBytes) return;
  const end = Buffer.alloc(keepBytes);
  const file = await open(path);
  try {
    await file.read(end, 0, keepBytes, found.size - keepBytes);
  } finally {
    await file.close();
  }
  await truncate(path, 0);
  await appendFile(path, end.subarray(end.indexOf("\n") + 1));
}
