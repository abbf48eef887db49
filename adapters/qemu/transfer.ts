import { NO_AMOUNTS, type TransferAmounts } from "../../core/agent/transfer-progress.ts";
import { bracketedHost } from "../../runtime/address-text.ts";
import { CALLED_OFF_MS, endMirrors, within } from "./disk-mirrors.ts";
import { endOfTransfer } from "./end-of-transfer.ts";
import { freePortAt } from "./free-port-at.ts";
import { QemuError } from "./qemu-error.ts";
import type { QemuGuest, QemuMonitor } from "./qemu-guest.ts";
import { QmpError } from "./qmp-error.ts";
import { TRANSFER_CREDENTIALS } from "./transfer-key.ts";
import type { VirtualMachine } from "./virtual-machine.ts";
import { unlessRefused } from "./volume-plugs.ts";

/** The address and ports at which a guest waits for another guest's memory and disks. */
export interface TransferTarget {
  readonly host: string;
  /** TCP port for the memory; null when only disks are wanted. */
  readonly memoryPort: number | null;
  /** TCP port for the disks; null when both guests see the same disks. */
  readonly disksPort: number | null;
  /** The key with which both guests encrypt the transfer and know each other. Null for a transfer in the clear. */
  readonly key: string | null;
}

/** How a guest listens for disks. */
interface DisksListening {
  readonly host: string;
  readonly isSecret: boolean;
  /** Chooses a port that is free at present. */
  readonly freePort?: (host: string) => Promise<number>;
}
/** A QEMU, and the disks that it has. */
type DisksHolder = QemuMonitor & { readonly record: { readonly machine: Pick<VirtualMachine, "disks"> } };

export interface MigrationInfo {
  readonly status?: string;
  readonly "error-desc"?: string;
  readonly downtime?: number;
  readonly ram?: { readonly total: number; readonly transferred: number; readonly remaining: number };
  readonly "socket-address"?: readonly { readonly type: string; readonly port?: string }[];
}

/** How many ports are tried until QEMU can listen at one of them. */
const PORTS_MAX = 10;
/**
 * Both sides need the same capabilities. The guest pauses at the switch-over until it is told to continue, the source has completed only
 * when the destination has confirmed it, and the destination takes the disks only at its start.
 */
const CAPABILITIES = ["events", "return-path", "pause-before-switchover", "late-block-activate"];
/**
 * For the destination of a paused guest, which is not started. It takes the disks when everything has arrived: QEMU has no other way to take them
 * without letting the guest run. The source has released them by then.
 */
const CAPABILITIES_FOR_PAUSED = CAPABILITIES.filter((name) => name !== "late-block-activate");
/** Without a limit. QEMU's default, 128 MiB/s, keeps busy guests from ever ending their move on fast networks. */
export const BYTES_PER_SECOND_MAX = 10 * 1024 ** 3;

/**
 * Lets a guest wait for another guest's memory. Resolves with its port. With `isSecret` it must have been given the transfer's key before. `isPaused`: the other
 * guest is paused, and this one will be.
 */
export async function listenForMemory(
  guest: QemuGuest,
  { host, isSecret, isPaused }: { readonly host: string; readonly isSecret: boolean; readonly isPaused: boolean },
): Promise<number> {
  await setCapabilities(guest, isPaused ? CAPABILITIES_FOR_PAUSED : CAPABILITIES);
  await guest.execute("migrate-set-parameters", { "tls-creds": isSecret ? TRANSFER_CREDENTIALS : "" });
  await guest.execute("migrate-incoming", { uri: `tcp:${bracketedHost(host)}:0` });
  const { "socket-address": addresses = [] } = await queryMigration(guest);
  const port = Number(addresses.find(({ type }) => type === "inet")?.port);
  if (!Number.isInteger(port) || port <= 0) throw new QemuError("not-started", "QEMU does not say where it listens");
  return port;
}

/**
 * Lets a guest wait for another guest's disks. Resolves with its port. With `isSecret` it must have been given the transfer's key before. QEMU cannot
 * choose the port, and another process may take it before QEMU does, even for a connection of its own. Then another port is tried.
 */
export async function listenForDisks(
  guest: DisksHolder,
  { host, isSecret, freePort = freePortAt }: DisksListening,
): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    const port = await freePort(host);
    try {
      await guest.execute("nbd-server-start", {
        addr: { type: "inet", data: { host, port: String(port) } },
        ...(isSecret && { "tls-creds": TRANSFER_CREDENTIALS }),
      });
    } catch (error) {
      if (tries === PORTS_MAX || !(error instanceof QmpError) || error.code !== "refused") throw error;
      continue;
    }
    await exportDisks(guest);
    return port;
  }
}

async function exportDisks(guest: DisksHolder): Promise<void> {
  for (const { node } of guest.record.machine.disks) {
    await guest.execute("block-export-add", {
      type: "nbd",
      id: `export-${node}`,
      "node-name": node,
      name: node,
      writable: true,
    });
  }
}

/** Ends the waiting for disks. Does nothing if the guest does not wait. */
export async function stopListeningForDisks(guest: QemuGuest): Promise<void> {
  const exports = (await guest.execute("query-block-exports")) as readonly unknown[];
  if (exports.length > 0) return void (await guest.execute("nbd-server-stop"));
  // A guest that boots from a volume may wait without offering any disk, and QEMU does not say whether it does.
  if (guest.record.machine.disks.length > 0 || guest.record.receives === null) return;
  await unlessRefused(guest.execute("nbd-server-stop"));
}

/** Begins to copy the guest's memory to the address where another guest waits for it. With `isSecret` it must have been given the key before. */
export async function beginMemory(
  guest: QemuGuest,
  target: {
    readonly host: string;
    readonly port: number;
    readonly bytesPerSecond: number;
    readonly isSecret: boolean;
  },
): Promise<void> {
  const { host, port, bytesPerSecond, isSecret } = target;
  await endOfTransfer(guest);
  await setCapabilities(guest, [...CAPABILITIES, "auto-converge"]);
  await guest.execute("migrate-set-parameters", {
    "max-bandwidth": bytesPerSecond,
    "tls-creds": isSecret ? TRANSFER_CREDENTIALS : "",
  });
  await guest.execute("migrate", { uri: `tcp:${bracketedHost(host)}:${port}` });
}

/** The memory's present transfer. QEMU keeps the state of the last one. */
export async function queryMigration(guest: QemuMonitor): Promise<MigrationInfo> {
  return (await guest.execute("query-migrate")) as MigrationInfo;
}

const CANCELLING = "cancelling";
/** A transfer with one of these states is under way. */
export const UNDER_WAY: readonly string[] = [
  ...["setup", "active", "pre-switchover", "device", "wait-unplug", CANCELLING, "postcopy-active"],
];

/** Cancels the transfer of memory and disks, and waits for its end. Does nothing if there is none. */
export async function cancelTransfer(guest: QemuMonitor): Promise<void> {
  // The mirrors end first: without the destination, which ends with the memory's transfer, their last writes would wait for long.
  await endMirrors(guest, { isUnwanted: true });
  const status = async () => (await queryMigration(guest)).status ?? "none";
  if (!UNDER_WAY.includes(await status())) return;
  await guest.execute("migrate_cancel");
  await within(CALLED_OFF_MS, "the transfer of the guest's memory", async () => {
    const now = await status();
    // A cancellation in the moment before QEMU pauses at the switch-over does not end that pause (seen with 7.2), and the guest would stand still for good.
    if (now === CANCELLING) await unlessRefused(guest.execute("migrate-continue", { state: CANCELLING }));
    return !UNDER_WAY.includes(now);
  });
}

export function memoryAmounts({ ram }: MigrationInfo): TransferAmounts {
  if (ram === undefined) return NO_AMOUNTS;
  return { total: ram.total, processed: ram.transferred, remaining: ram.remaining };
}

async function setCapabilities(guest: QemuGuest, names: readonly string[]): Promise<void> {
  const capabilities = names.map((capability) => ({ capability, state: true }));
  await guest.execute("migrate-set-capabilities", { capabilities });
}
