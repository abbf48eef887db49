import { readdirSync, readlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { type HostDevice, type PortDevice, portDevices } from "../../core/pinning/host-device.ts";
import { Turns } from "../../runtime/turns.ts";
import { QemuError } from "./qemu-error.ts";
import { runTool } from "./run-tool.ts";

const PCI = "sys/bus/pci/devices";
const NO_MAC = "00:00:00:00:00:00";

/** Runs a program of the host, like `runTool`. */
export type RunProgram = (program: string, args: readonly string[], signal?: AbortSignal) => Promise<unknown>;

/** A guest with its devices, named by its directory. */
interface DeviceHolder {
  readonly dir: string;
  readonly devices: readonly HostDevice[] | undefined;
}

/**
 * Sets what the network cards of a host know of the virtual functions of guests: the MAC address and the VLAN of the port that a function connects, which the
 * guest itself cannot choose. A function keeps them until they are cleared, whoever has it by then. So they are set before each start of a guest, and cleared
 * when its QEMU has ended: on another host or in another guest the port's address may be in use again.
 *
 * Two guests of one server may have the same function, of which one runs: the clearing for the one never follows the setting for the other.
 */
export class VirtualFunctions {
  readonly #root: string;
  readonly #run: RunProgram;
  readonly #turns = new Turns<string>();
  /** The directory of the guest for which each function was set last. */
  readonly #users = new Map<string, string>();

  /** `root` is `/`, or a copy of a host's files. */
  constructor(root: string, run: RunProgram = runTool) {
    this.#root = root;
    this.#run = run;
  }

  /** Rejects with a QemuError that names the port, when the card does not take the settings, or when Neutron has not said what they are. */
  async connect({ dir, devices }: DeviceHolder, signal: AbortSignal): Promise<void> {
    for (const device of portDevices(devices)) {
      this.#users.set(device.address, dir);
      await this.#turns.take([device.address], () => this.#set(device, signal));
    }
  }

  /**
   * Clears the functions of a guest whose QEMU has ended. `isUsed` tells whether another guest that runs has the function. A function that has left the host has
   * nothing to clear.
   */
  async release({ dir, devices }: DeviceHolder, isUsed: (address: string) => boolean): Promise<void> {
    for (const device of portDevices(devices))
      await this.#turns.take([device.address], async () => {
        if ((this.#users.get(device.address) ?? dir) !== dir || isUsed(device.address)) return;
        await this.#clear(device);
        // The next guest may be waiting for its turn.
        if (this.#users.get(device.address) === dir) this.#users.delete(device.address);
      });
  }

  async #set({ address, port }: PortDevice, signal: AbortSignal): Promise<void> {
    const { portId, mac, connection } = port;
    if (connection === null)
      throw new QemuError(
        "unavailable",
        `it is not known how port ${portId} is connected on this host, because Neutron has not told its VLAN: reboot the server hard when Neutron answers`,
      );
    const place = functionOf(address, this.#root);
    if (place === null)
      throw new QemuError(
        "unavailable",
        `PCI device ${address} of port ${portId} has no MAC address to set: its physical function has no network interface on this host, or is bound to another driver`,
      );
    const trust = connection.isTrusted ? ["trust", "on"] : [];
    const args = ["link", "set", "dev", place.card, "vf", String(place.index), "mac", mac];
    try {
      await this.#run("ip", [...args, "vlan", String(connection.vlan), ...trust], signal);
    } catch (error) {
      throw new QemuError(
        "unavailable",
        `virtual function ${place.index} of ${place.card} (${address}) could not get the MAC address ${mac} and the VLAN ${connection.vlan} of port ${portId} (${(error as Error).message}): the agent's user needs the right to configure networks (CAP_NET_ADMIN)`,
        { cause: error },
      );
    }
  }

  async #clear({ address, port }: PortDevice): Promise<void> {
    const place = functionOf(address, this.#root);
    if (place === null) return;
    const trust = port.connection?.isTrusted === true ? ["trust", "off"] : [];
    const args = ["link", "set", "dev", place.card, "vf", String(place.index), "mac", NO_MAC, "vlan", "0", ...trust];
    try {
      await this.#run("ip", args);
    } catch (error) {
      throw new QemuError(
        "unavailable",
        `virtual function ${place.index} of ${place.card} (${address}) keeps the MAC address and the VLAN of port ${port.portId} (${(error as Error).message}): the agent's user needs the right to configure networks (CAP_NET_ADMIN)`,
        { cause: error },
      );
    }
  }
}

/** The network interface of a virtual function's card, and the function's number there. Null for any other function, and for a card without an interface. */
export function functionOf(address: string, root: string): { readonly card: string; readonly index: number } | null {
  const physical = join(root, PCI, address, "physfn");
  const [card] = entriesOf(join(physical, "net"));
  const link = entriesOf(physical).find(
    (name) => /^virtfn\d+$/.test(name) && targetOf(join(physical, name)) === address,
  );
  return card === undefined || link === undefined ? null : { card, index: Number(link.slice("virtfn".length)) };
}

function entriesOf(path: string): readonly string[] {
  try {
    return readdirSync(path).sort();
  } catch {
    return [];
  }
}

function targetOf(path: string): string | null {
  try {
    return basename(readlinkSync(path));
  } catch {
    return null;
  }
}
