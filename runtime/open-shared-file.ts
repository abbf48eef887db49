import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** A symbolic link is not followed, and opening a pipe does not wait for its writer. */
const SAFELY = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Opens a file for reading in a directory to which other machines can write. Rejects with an Error that says so if it is a symbolic link, which would name a file of this
 * machine, such as one with a password, or if it is no regular file; and with the system's error otherwise, as for a file that is missing.
 */
export async function openSharedFile(path: string): Promise<FileHandle> {
  const file = await open(path, SAFELY).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ELOOP") throw error;
    const why = "and other machines could make one to any file of this machine: replace it by a file";
    throw new Error(`${path} is a symbolic link, ${why}`, { cause: error });
  });
  try {
    if ((await file.stat()).isFile()) return file;
    throw new Error(`${path} is no regular file`);
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Reads a short text as `openSharedFile` opens its file. Rejects with an Error if the file is longer than `bytesMax`. */
export async function readSharedText(path: string, bytesMax: number): Promise<string> {
  const file = await openSharedFile(path);
  try {
    const buffer = Buffer.alloc(bytesMax + 1);
    let length = 0;
    for (let read = 1; read > 0 && length < buffer.length; length += read)
      ({ bytesRead: read } = await file.read(buffer, length, buffer.length - length, length));
    if (length > bytesMax) throw new Error(`${path} is not read: it is longer than ${bytesMax} bytes`);
    return buffer.toString("utf8", 0, length);
  } finally {
    await file.close();
  }
}
