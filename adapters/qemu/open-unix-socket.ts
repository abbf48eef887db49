import { closeSync, constants, openSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { basename, dirname } from "node:path";

/**
 * Opens a socket by way of its directory, because the path of a directory of guests may be longer than the 107 bytes that an address has room for.
 * Throws, or rejects `opened`, with the system's error.
 */
export function openUnixSocket(path: string): { readonly socket: Socket; readonly opened: Promise<void> } {
  const dir = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  const socket = createConnection(`/proc/self/fd/${dir}/${basename(path)}`);
  const opened = new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  }).finally(() => closeSync(dir));
  return { socket, opened };
}
