import { readdirSync, readlinkSync } from "node:fs";
import { basename, join } from "node:path";
import {
  type HostDevice,
  type PortConnection,
  type PortFunction,
  portFunctions,
} from "../../core/pinning/host-device.ts";
import { Turns } from "../../runtime/turns.ts";
import { FunctionNotes } from "./function-notes.ts";
import { QemuError } from "./qemu-error.ts";
import { runTool } from "./run-tool.ts";

const PCI = "sys/bus/pci/devices";
/** The MAC addresses of a function without a port: some cards refuse the first one, which others take to mean that the guest may choose. */
const NO_MACS = ["00:00:00:00:00:00", "02:00:00:00:00:00"] as const;
const NEEDS_RIGHT = "the agent's user needs the right to configure networks (CAP_NET_ADMIN)";

/** Runs a program of the host, like `runTool`. */
export type RunProgram = (program: string, args: readonly string[], signal?: AbortSignal) => Promise<unknown>;

/** Whether a guest that runs has the function. The guest of the directory, if one is named, may have no record by which it could be found. */
export type IsUsed = (address: string, dir?: string) => boolean | Promise<boolean>;

/** A virtual function that was set for a port. */
interface SetFunction {
  readonly address: string;
  readonly portId: string;
  readonly mac: string;
}

/** A guest with its devices, named by its directory. */
interface DeviceHolder {
  readonly dir: string;
  readonly devices: readonly HostDevice[] | undefined;
}

/**
 * Sets what the network cards of a host know of the virtual functions of guests: the MAC address and the VLAN of the port that a function connects, which the
 * guest itself cannot choose, and whether the port is trusted. A function keeps them until they are cleared, whoever has it by then. So they are set before each start of a guest, and cleared
 * when its QEMU has ended: on another host or in another guest the port's address may be in use again.
 *
 * Functions that could not be cleared, or that an earlier process has left, are left over. They are cleared later, at the latest before a guest gets one of them that sets nothing
 * itself. Functions without a note are left alone, since their settings are the operator's.
 *
 * Two guests of one server may have the same function, of which one runs: the clearing for the one never follows the setting for the other.
 */
export class VirtualFunctions {
  readonly #root: string;
  readonly #run: RunProgram;
  readonly #notes: FunctionNotes;
  readonly #turns = new Turns<string>();
  /** The directory of the guest for which each function was set last. */
  readonly #users = new Map<string, string>();
  /** The functions that are left over. */
  readonly #left: Set<string>;

  /** `root` is `/`, or a copy of a host's files. */
  constructor(root: string, run: RunProgram = runTool, notes = new FunctionNotes({ path: null, boot: "" })) {
    this.#root = root;
    this.#run = run;
    this.#notes = notes;
    this.#left = new Set(notes.all().keys());
  }

  /**
   * Rejects with a QemuError that names the port, when the card does not take the settings, or when Neutron has not said what they are. A function that connects no port
   * is cleared of what its former guest's port has left there, and the guest does not get it otherwise. `isUsed` is as in `release`.
   */
  async connect({ dir, devices = [] }: DeviceHolder, signal: AbortSignal, isUsed: IsUsed = () => false): Promise<void> {
    for (const device of devices)
      if (device.kind === "pci")
        await this.#turns.take([device.address], async () => {
          const { address, port } = device;
          if (port === undefined) return this.#clearNoted(address, isUsed);
          await this.#setFor(dir, { ...device, port }, { signal, isUsed });
        });
  }

  async #setFor(
    dir: string,
    device: PortFunction,
    { signal, isUsed }: { readonly signal: AbortSignal; readonly isUsed: IsUsed },
  ): Promise<void> {
    const { address, port } = device;
    const { portId, mac } = port;
    // Until the card has been asked, it has what it had before, and so have the notes.
    const setting = this.#settingOf(device);
    const before = this.#notes.all().get(address);
    if (before !== undefined && before.dir !== dir && (await isUsed(address, before.dir)))
      throw new QemuError(
        "unavailable",
        `PCI device ${address} of port ${portId} is in use by a guest that runs, for port ${before.portId} (its directory was ${before.dir}): end that guest's QEMU, or take the device out of --pci-devices`,
      );
    this.#notes.put(address, { dir, portId, mac, formerMacs: this.#formerMacs(address, mac) });
    try {
      await this.#set(setting, signal);
    } catch (error) {
      // What the card has may be of either guest: the one that is released first clears it.
      this.#users.delete(address);
      throw error;
    }
    this.#left.delete(address);
    this.#notes.put(address, { dir, portId, mac });
    this.#users.set(address, dir);
  }

  /** The other MAC addresses that are noted of a function. */
  #formerMacs(address: string, mac: string): readonly string[] {
    const note = this.#notes.all().get(address);
    const macs = note === undefined ? [] : [note.mac, ...(note.formerMacs ?? [])];
    return [...new Set(macs)].filter((one) => one !== mac);
  }

  /**
   * Clears the functions of a guest whose QEMU has ended. `isUsed` tells whether another guest that runs has the function. A function that has left the host has
   * nothing to clear, and neither has one to which its card has never given the port's MAC address. Rejects with a QemuError if the card keeps the settings.
   */
  async release({ dir, devices }: DeviceHolder, isUsed: IsUsed): Promise<void> {
    for (const { address, port } of portFunctions(devices)) await this.#release(dir, { address, ...port }, isUsed);
  }

  /** Notes the functions of a guest that runs, and that an agent without notes has started. */
  remember({ dir, devices }: DeviceHolder): void {
    for (const { address, port } of portFunctions(devices))
      if (!this.#notes.all().has(address)) this.#notes.put(address, { dir, portId: port.portId, mac: port.mac });
  }

  /** Like `release`, also for the functions of the guest that its record does not name, because it is damaged or older. */
  async releaseAll({ dir, devices }: DeviceHolder, isUsed: IsUsed): Promise<void> {
    await this.release({ dir, devices }, isUsed);
    const noted = [...this.#notes.all()].filter(([, note]) => note.dir === dir);
    for (const [address, { portId, mac }] of noted) await this.#release(dir, { address, portId, mac }, isUsed);
  }

  #release(dir: string, one: SetFunction, isUsed: IsUsed): Promise<void> {
    const { address } = one;
    return this.#turns.take([address], async () => {
      if ((this.#users.get(address) ?? dir) !== dir) return;
      if (await isUsed(address)) {
        // Somebody else has given it to a QEMU, which does not tell when it ends.
        if (this.#notes.all().get(address)?.dir === dir) this.#left.add(address);
        return;
      }
      await this.#clear({ dir, ...one });
      // The next guest may be waiting for its turn.
      if (this.#users.get(address) === dir) this.#users.delete(address);
    });
  }

  /** Whether any functions are left over. */
  get hasLeft(): boolean {
    return this.#left.size > 0;
  }

  /** Tries again to clear the functions that are left over and that no guest uses. Returns those that their cards keep, with the guests' directories and the reasons. */
  async clearLeft(isUsed: IsUsed): Promise<readonly { readonly dir: string; readonly error: unknown }[]> {
    const kept: { readonly dir: string; readonly error: unknown }[] = [];
    for (const address of [...this.#left])
      await this.#turns.take([address], async () => {
        const dir = this.#notes.all().get(address)?.dir ?? "";
        // A guest may have got it while its turn was waited for.
        if (!this.#left.has(address)) return;
        await this.#clearNoted(address, isUsed).catch((error: unknown) => kept.push({ dir, error }));
      });
    return kept;
  }

  /** Clears what is noted of a function, unless a guest uses it. */
  async #clearNoted(address: string, isUsed: IsUsed): Promise<void> {
    const note = this.#notes.all().get(address);
    if (note === undefined) this.#left.delete(address);
    else if (!(await isUsed(address, note.dir))) await this.#clear({ address, ...note });
  }

  /** What a card is to be told. Throws a QemuError if that is unknown, or the function has no card. */
  #settingOf({ address, port }: PortFunction): Setting {
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
    return { address, portId, mac, connection, place };
  }

  async #set({ address, portId, mac, connection, place }: Setting, signal: AbortSignal): Promise<void> {
    try {
      await this.#setOf(place, ["mac", mac, "vlan", String(connection.vlan)], signal);
    } catch (error) {
      throw new QemuError(
        "unavailable",
        `virtual function ${place.index} of ${place.card} (${address}) could not get the MAC address ${mac} and the VLAN ${connection.vlan} of port ${portId} (${(error as Error).message}): ${NEEDS_RIGHT}`,
        { cause: error },
      );
    }
    if (!connection.isTrusted) return this.#distrust(place, address, signal);
    try {
      await this.#setOf(place, ["trust", "on"], signal);
    } catch (error) {
      throw new QemuError(
        "unavailable",
        `virtual function ${place.index} of ${place.card} (${address}) could not be trusted, as port ${portId} asks (${(error as Error).message}): take "trusted" out of the port's binding:profile, or use a card that can trust its functions`,
        { cause: error },
      );
    }
  }

  async #clear({ dir, ...one }: SetFunction & { readonly dir: string }): Promise<void> {
    const { address, portId, mac } = one;
    this.#left.add(address);
    const formerMacs = this.#formerMacs(address, mac);
    this.#notes.put(address, { dir, portId, mac, formerMacs });
    const place = functionOf(address, this.#root);
    if (place !== null) await this.#clearAt(place, { address, portId, macs: [mac, ...formerMacs] });
    this.#left.delete(address);
    this.#notes.remove(address);
  }

  async #clearAt(
    place: FunctionPlace,
    { address, portId, macs }: Omit<SetFunction, "mac"> & { readonly macs: readonly string[] },
  ): Promise<void> {
    try {
      await this.#forget(place);
    } catch (error) {
      // Without the program nothing was set.
      if (error instanceof QemuError && error.code === "unavailable") return;
      const shown = await this.#shown(place);
      if (shown === null || shown.mac === null || macs.some((mac) => mac.toLowerCase() === shown.mac))
        throw new QemuError(
          "unavailable",
          `virtual function ${place.index} of ${place.card} (${address}) keeps the MAC address and the VLAN of port ${portId} (${(error as Error).message}): ${NEEDS_RIGHT}`,
          { cause: error },
        );
    }
    await this.#distrust(place, address);
  }

  /**
   * Makes sure that the function is not trusted, whatever is recorded of its former guests: the record of one that was trusted may be damaged, or have been
   * changed since. A card that refuses this, like one that knows no trust, is asked whether it trusts the function.
   */
  async #distrust(place: FunctionPlace, address: string, signal?: AbortSignal): Promise<void> {
    try {
      await this.#setOf(place, ["trust", "off"], signal);
    } catch (error) {
      signal?.throwIfAborted();
      if ((await this.#shown(place, signal))?.isTrusted === false) return;
      throw new QemuError(
        "unavailable",
        `virtual function ${place.index} of ${place.card} (${address}) may be trusted still, because the card did not end that (${(error as Error).message}): ${NEEDS_RIGHT}`,
        { cause: error },
      );
    }
  }

  /** Rejects with the card's last word if it takes none of the addresses. */
  async #forget(place: FunctionPlace): Promise<void> {
    const [first, other] = NO_MACS.map((mac) => ["mac", mac, "vlan", "0"]);
    await this.#setOf(place, first ?? []).catch(() => this.#setOf(place, other ?? []));
  }

  /** What the card says of the function. Null if it cannot be asked, or does not name the function. */
  async #shown({ card, index }: FunctionPlace, signal?: AbortSignal): Promise<ShownFunction | null> {
    try {
      const [link] = JSON.parse(String(await this.#run("ip", ["-json", "link", "show", "dev", card], signal)));
      const shown = link.vfinfo_list.find(({ vf }: { readonly vf?: unknown }) => vf === index);
      // The address was called `mac` by older versions of ip. A card that knows no trust shows none.
      const { address = shown.mac, trust = false } = shown;
      return { mac: typeof address === "string" ? address.toLowerCase() : null, isTrusted: trust !== false };
    } catch {
      return null;
    }
  }

  #setOf({ card, index }: FunctionPlace, values: readonly string[], signal?: AbortSignal): Promise<unknown> {
    return this.#run("ip", ["link", "set", "dev", card, "vf", String(index), ...values], signal);
  }
}

/** A virtual function as its card's network interface names it. */
interface FunctionPlace {
  readonly card: string;
  readonly index: number;
}

/** What a card is told of a function for a port. */
interface Setting extends SetFunction {
  readonly connection: PortConnection;
  readonly place: FunctionPlace;
}

interface ShownFunction {
  /** In lower case. Null if it is not shown. */
  readonly mac: string | null;
  readonly isTrusted: boolean;
}

/** The network interface of a virtual function's card, and the function's number there. Null for any other function, and for a card without an interface. */
export function functionOf(address: string, root: string): FunctionPlace | null {
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
