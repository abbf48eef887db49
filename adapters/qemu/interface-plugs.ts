import { setTimeout as delay } from "node:timers/promises";
import { QemuError } from "./qemu-error.ts";
import type { QemuMonitor } from "./qemu-guest.ts";
import { QmpError } from "./qmp-error.ts";
import {
  interfaceDevice,
  interfacePlace,
  type MachineInterface,
  METADATA_NETWORK,
  metadataSocket,
  type VirtualMachine,
} from "./virtual-machine.ts";
import { hasDevice, unlessRefused } from "./volume-plugs.ts";

const POLL_MS = 20;
/** Linux needs less than a second to release an interface. */
const RELEASE_MS = 10_000;

export type NamedInterface = MachineInterface & { readonly id: string };

export interface ReleaseControl {
  readonly signal: AbortSignal;
  /** How long a guest may need to release an interface, if not `RELEASE_MS`. */
  readonly releaseMs?: number | undefined;
}

/**
 * Puts an interface into a guest whose QEMU exists. Does nothing if QEMU has it already. After a QemuError QEMU does not have it; after another error it
 * may have it.
 */
export async function plugInterface(
  guest: QemuMonitor,
  machine: Pick<VirtualMachine, "machineType" | "interfaceSlots" | "hasMetadataAddress" | "userNetwork">,
  one: NamedInterface,
): Promise<void> {
  const { id, mac } = one;
  if (await hasDevice(guest, interfaceDevice(id))) return;
  // An agent that died in the middle left the network's end.
  await removeNetwork(guest, id);
  try {
    await addNetwork(guest, machine, one);
    const device = { driver: "virtio-net-pci", id: interfaceDevice(id), netdev: id, mac };
    await guest.execute("device_add", { ...device, ...interfacePlace(machine, one) });
  } catch (error) {
    if (!(error instanceof QmpError) || error.code !== "refused") throw error;
    await removeNetwork(guest, id);
    throw new QemuError("state", `QEMU refuses a further interface: ${error.message}`, { cause: error });
  }
}

/**
 * Takes an interface out of a guest whose QEMU exists. Does nothing if QEMU does not have it. The guest has to release it. Rejects with a QemuError if it
 * does not do so in time; it may do so later.
 */
export async function unplugInterface(guest: QemuMonitor, id: string, control: ReleaseControl): Promise<void> {
  await unplugDevice(guest, interfaceDevice(id), control);
  await removeNetwork(guest, id);
}

/** Takes an interface's device out of a guest, like `unplugInterface`, and leaves its network. */
export async function unplugDevice(
  guest: QemuMonitor,
  device: string,
  { signal, releaseMs = RELEASE_MS }: ReleaseControl,
): Promise<void> {
  const untilMs = performance.now() + releaseMs;
  // A device that has been asked to go already refuses that while it goes.
  if (await hasDevice(guest, device)) {
    const refusal = await refusalOf(guest.execute("device_del", { id: device }));
    if (refusal !== null && !/unplug/.test(refusal))
      throw new QemuError("state", `QEMU cannot take an interface out of the guest while it runs: ${refusal}`);
  }
  while (await hasDevice(guest, device)) {
    signal.throwIfAborted();
    if (performance.now() > untilMs)
      throw new QemuError(
        "state",
        `the guest did not release the interface within ${releaseMs / 1_000} s: its operating system may not have booted, or cannot do that; stop the server first`,
      );
    await delay(POLL_MS);
  }
}

async function addNetwork(
  guest: QemuMonitor,
  { hasMetadataAddress: hasMetadata = false, userNetwork }: Pick<VirtualMachine, "hasMetadataAddress" | "userNetwork">,
  { id, bridge }: NamedInterface,
): Promise<void> {
  if (bridge !== null) {
    await guest.execute("netdev_add", { id, type: "bridge", br: bridge });
    return;
  }
  const socket = metadataSocket(id);
  if (hasMetadata) {
    const data = { addr: { type: "unix", data: { path: socket } }, server: true, wait: false };
    await guest.execute("chardev-add", { id: socket, backend: { type: "socket", data } });
  }
  const { net, address } = METADATA_NETWORK;
  const metadata = hasMetadata ? { net, guestfwd: [{ str: `${address}-chardev:${socket}` }] } : {};
  const isolation = userNetwork === "isolated" ? { restrict: true } : {};
  await guest.execute("netdev_add", { id, type: "user", ...isolation, ...metadata });
}

/** Removes the network's end of an interface, as far as QEMU has it. */
async function removeNetwork(guest: QemuMonitor, id: string): Promise<void> {
  await unlessRefused(guest.execute("netdev_del", { id }));
  // QEMU removes it together with a network that uses it.
  await unlessRefused(guest.execute("chardev-remove", { id: metadataSocket(id) }));
}

/** QEMU's reason for refusing a command. Null if it does not refuse it. */
async function refusalOf(done: Promise<unknown>): Promise<string | null> {
  try {
    await done;
    return null;
  } catch (error) {
    if (!(error instanceof QmpError) || error.code !== "refused") throw error;
    return error.message;
  }
}
