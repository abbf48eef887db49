import { constants } from "node:fs";
import { lstat, open } from "node:fs/promises";
import { createConnection, type Socket } from "node:net";
import { basename, dirname } from "node:path";

/**
 * Opens a socket by way of its directory, because the path of a directory of guests may be longer than the 107 bytes that an address has room for.
 * Rejects with the system's error. The socket may end as soon as its caller waits for anything else.
 *
 * Connecting looks the socket up on this very thread. So the storage is asked for it before, and does not have to answer again in the moment after that.
 */
export async function openUnixSocket(path: string): Promise<Socket> {
  const dir = await open(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const name = `/proc/self/fd/${dir.fd}/${basename(path)}`;
    await lstat(name);
    const socket = createConnection(name);
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    // Without a listener, an error would end the process.
    socket.on("error", () => undefined);
    return socket;
  } finally {
    // Not awaited: the caller must hear whatever happens to the socket from now on.
    dir.close().catch(() => undefined);
  }
}
