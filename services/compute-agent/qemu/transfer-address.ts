import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { TransferTarget } from "../../../adapters/qemu/transfer.ts";
import type { VirtualMachine } from "../../../adapters/qemu/virtual-machine.ts";
import { bracketedHost } from "../../../runtime/address-text.ts";
import type { HandOffOrder } from "../driver.ts";

/** The address at which a prepared guest waits for the guest that moves to it. */
export interface TransferAddress extends TransferTarget {
  /** The beginning of the SHA-512 of the image below the first disk; empty for a blank one. Equal bases need not be copied. */
  readonly base: string;
  /** The kind of the prepared guest's display, or `none`. Null when an older agent does not tell. */
  readonly display: string | null;
  /** The CPU model of the prepared guest, with its changes. Null when an older agent does not tell. */
  readonly cpuModel: string | null;
  /** Whether the guest has a controller for volumes. An agent of an older version does not say so, and its guests have none. */
  readonly hasVolumeBus: boolean;
  /** The slots of the guest's interfaces (see `interfacesMark`). An agent of an older version does not say so, and its guests have no slots. */
  readonly interfaces: string;
  /** What each of the guest's disks is (see `rolesMark`). Null from an agent of an older version, which does not say so. */
  readonly roles: string | null;
}

const SCHEME = "qemu:";
/** The address of a prepared guest that takes nothing from the guest that moves, because it is built from an image. */
export const TAKES_NOTHING = "qemu://nothing";
const PORT_MAX = 65_535;
const KEY = /^[0-9a-f]{64}$/;

export function formatTransferAddress(address: TransferAddress): string {
  const { host, memoryPort, disksPort, base, display, cpuModel, key, hasVolumeBus, interfaces, roles } = address;
  const query = new URLSearchParams();
  if (memoryPort !== null) query.set("memory", String(memoryPort));
  if (disksPort !== null) query.set("disks", String(disksPort));
  if (base !== "") query.set("base", base);
  if (display !== null) query.set("display", display);
  if (cpuModel !== null) query.set("cpu", cpuModel);
  if (key !== null) query.set("key", key);
  if (hasVolumeBus) query.set("volumes", "true");
  if (interfaces !== "") query.set("interfaces", interfaces);
  if (roles !== null) query.set("roles", roles);
  return `${SCHEME}//${bracketedHost(host)}/?${query}`;
}

/**
 * Reads an address; null for a guest that takes nothing. Throws an Error for anything else, in which no key is quoted. An agent of an older version
 * gives no key.
 */
export function parseTransferAddress(text: string): TransferAddress | null {
  if (text === TAKES_NOTHING) return null;
  if (text === "") throw new Error("the destination did not say at which address its guest listens");
  const url = URL.canParse(text) ? new URL(text) : null;
  const host = url?.hostname.replace(/^\[|\]$/g, "") ?? "";
  if (url === null || url.protocol !== SCHEME || host === "")
    throw new Error(
      `the guest at the destination listens at "${text.split("?")[0]}", which is not the address of a QEMU guest`,
    );
  const memoryPort = portOf(url, "memory");
  const disksPort = portOf(url, "disks");
  const key = url.searchParams.get("key");
  if (key !== null && !KEY.test(key)) throw new Error("the key of the guest at the destination is malformed");
  const { searchParams: query } = url;
  const hasVolumeBus = query.get("volumes") === "true";
  const [base, display, cpuModel] = [query.get("base") ?? "", query.get("display"), query.get("cpu")];
  const interfaces = query.get("interfaces") ?? "";
  const roles = query.get("roles");
  return { host, memoryPort, disksPort, base, display, cpuModel, key, hasVolumeBus, interfaces, roles };
}

/**
 * The address to which an order hands a guest over; null for a destination that takes nothing. Throws if the guest is to be handed over with its memory to such a
 * destination: its agent does not know the kind of move, and the memory would be lost.
 */
export function addressToHandOverTo({ listensAt, live, toHost }: HandOffOrder): TransferAddress | null {
  const to = parseTransferAddress(listensAt);
  if (to === null && live)
    throw new QemuError(
      "state",
      `host ${toHost} has prepared a guest that takes no memory: update that host's agent, and migrate the server again`,
    );
  return to;
}

function portOf(url: URL, name: string): number | null {
  const text = url.searchParams.get(name);
  if (text === null) return null;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > PORT_MAX) throw new Error(`the destination's port for the ${name} is "${text.slice(0, 20)}"`);
  return port;
}

const BASE_CHARS = 32;

/** The form in which an address names the display of a machine. */
export const displayMark = ({ display }: Pick<VirtualMachine, "display">): string => display ?? "none";

const METADATA_MARK = ":metadata";

/**
 * The form in which an address names the slots of a machine's interfaces: the number of slots, those that are taken, and whether the machine has the metadata
 * address. Empty without slots.
 */
export function interfacesMark({ interfaces, interfaceSlots, hasMetadataAddress }: VirtualMachine): string {
  if (interfaceSlots === undefined) return "";
  const taken = interfaces.map(({ slot = 0 }) => slot).sort((a, b) => a - b);
  return `${interfaceSlots}:${taken.join(".")}${hasMetadataAddress === true ? METADATA_MARK : ""}`;
}

/** Whether a machine with this `interfacesMark` has the metadata address. */
export const tellsMetadata = (interfaces: string): boolean => interfaces.endsWith(METADATA_MARK);

/** The form in which an address names what each disk of a machine is: `disk0:root,disk1:swap`. Null for a machine that does not know it. */
export function rolesMark({ disks }: Pick<VirtualMachine, "disks">): string | null {
  if (disks.some(({ role }) => role === undefined)) return null;
  return disks.map(({ node, role }) => `${node}:${role}`).join(",");
}

/** The form in which an address names a base. */
export const baseMark = (sha512: string): string => sha512.slice(0, BASE_CHARS);
