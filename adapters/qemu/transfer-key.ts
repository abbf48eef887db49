import { randomBytes } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { dhParams } from "./dh-params.ts";
import type { QemuGuest } from "./qemu-guest.ts";
import { QmpError } from "./qmp-error.ts";

/** The name under which a guest's QEMU knows the key, for the parameter `tls-creds` of its commands. */
export const TRANSFER_CREDENTIALS = "transfer";
/** TLS with pre-shared keys names each key. There is only one. */
const KEY_NAME = "berth";
const DIR = "transfer";
const KEY_BYTES = 32;

/**
 * A new key for one transfer between two guests. Only who has it can reach the guest that waits, or pretend to be it, and the transfer is
 * encrypted (TLS-PSK), so that hosts need no certificates for it.
 */
export function newTransferKey(): string {
  return randomBytes(KEY_BYTES).toString("hex");
}

/**
 * Gives a guest's QEMU the key of its transfer, in place of an earlier one. Rejects with a QmpError if this QEMU was built without TLS. QEMU reads a
 * server's file at each connection, so it stays until `forgetTransferKey`.
 */
export async function useTransferKey(guest: QemuGuest, key: string, endpoint: "server" | "client"): Promise<void> {
  const dir = join(guest.dir, DIR);
  await guest.storage.work(async () => {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    // GnuTLS knows the files by these names.
    await writeFile(join(dir, "keys.psk"), `${KEY_NAME}:${key}\n`, { mode: 0o600 });
    if (endpoint === "server") await writeFile(join(dir, "dh-params.pem"), dhParams(), { mode: 0o600 });
  });
  await dropCredentials(guest);
  await guest.execute("object-add", {
    ...{ "qom-type": "tls-creds-psk", id: TRANSFER_CREDENTIALS, endpoint, dir },
    ...(endpoint === "client" && { username: KEY_NAME }),
  });
  if (endpoint === "client") await guest.storage.work(() => rm(dir, { recursive: true }));
}

/** Removes the key of a transfer that is over. Does nothing if there is none. */
export async function forgetTransferKey(guest: QemuGuest): Promise<void> {
  await dropCredentials(guest);
  await guest.storage.work(() => rm(join(guest.dir, DIR), { recursive: true, force: true }));
}

async function dropCredentials(guest: QemuGuest): Promise<void> {
  try {
    await guest.execute("object-del", { id: TRANSFER_CREDENTIALS });
  } catch (error) {
    // QEMU refuses to delete an object that does not exist.
    if (!(error instanceof QmpError) || error.code !== "refused") throw error;
  }
}
