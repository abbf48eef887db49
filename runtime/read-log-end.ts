import { open } from "node:fs/promises";

/** Reads at most `bytesMax` bytes from the end of a log that another process writes. A log that does not exist is empty. */
export async function readLogEnd(path: string, bytesMax: number): Promise<Uint8Array> {
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (file === null) return new Uint8Array();
  try {
    const { size } = await file.stat();
    const length = Math.min(size, bytesMax);
    const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
