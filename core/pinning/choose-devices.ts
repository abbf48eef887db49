import type { AllocationRequest } from "../../proto/gen/berth/shared.ts";
import { DISPLAY_HEAD_CLASS } from "../scheduling/request/display-heads.ts";
import type { NeedsRefused } from "./guest-needs.ts";
import { type DevicePlace, deviceName, type HostDevice, type MdevSource } from "./host-device.ts";
import type { MachineLayout } from "./machine-layout.ts";

/** The standard classes of devices. The other ones are those of PCI devices, by vendor and product, and those that operators give devices. */
const DEVICE_CLASSES: readonly string[] = ["PCI_DEVICE", "SRIOV_NET_VF", "VGPU", DISPLAY_HEAD_CLASS, "PGPU", "FPGA"];
const PCI_CLASS = /^CUSTOM_PCI_/;
const CUSTOM = "CUSTOM_";

/** One part of a claim that a guest can only use if it gets devices for it. */
export interface ClaimedDevices {
  readonly provider: string;
  readonly resourceClass: string;
  readonly amount: number;
}

/** The host's devices at this moment. */
export interface DeviceHost {
  /** Null for a host that only says how many devices it has, and not which. */
  readonly layout: MachineLayout | null;
  /** The names of devices of other servers' guests. */
  readonly taken: ReadonlySet<string>;
  /** The devices of this server's other guests on the host, of which at most one runs. The new guest gets these first. */
  readonly own: readonly HostDevice[];
  /** The UUIDs of the mediated devices that the host has now. Those that are nobody's come before new ones, as in Nova: they may be all that the card can have. */
  readonly existing: (source: MdevSource) => readonly string[];
  /** The UUID of the guest's mediated device of this number, from 0 on. */
  readonly newUuid: (index: number) => string;
}

export type ChosenDevices = { readonly kind: "chosen"; readonly devices: readonly HostDevice[] } | NeedsRefused;

/**
 * The devices that a claim names. A class that an operator has made up is one of devices where the host's settings give it to devices: other classes may be
 * licences or whatever else is counted, for which a guest gets nothing. A class that was claimed of a PCI device's provider stands for
 * the device also after the settings no longer give the device that class: a server that has the device must not be built again without it.
 */
export function claimedDevices(
  allocation: AllocationRequest | undefined,
  layout: MachineLayout | null = null,
): readonly ClaimedDevices[] {
  const own = new Set(layout?.deviceClasses);
  const providers = new Set(layout?.deviceProviders);
  const isOfDevices = ({ provider, resourceClass }: ClaimedDevices) =>
    DEVICE_CLASSES.includes(resourceClass) ||
    PCI_CLASS.test(resourceClass) ||
    own.has(resourceClass) ||
    (resourceClass.startsWith(CUSTOM) && providers.has(provider));
  const items = allocation?.items ?? [];
  return items.filter((item) => item.amount > 0 && isOfDevices(item));
}

/**
 * Chooses a guest's devices within the providers that its claim names. The same input gives the same choice. Refuses when a provider is unknown, or has too few
 * free devices, which only happens when the claim was made with another idea of the host.
 */
export function chooseDevices(claimed: readonly ClaimedDevices[], host: DeviceHost): ChosenDevices {
  const devices: HostDevice[] = [];
  for (const claim of claimed) {
    const { provider, resourceClass, amount } = claim;
    if (resourceClass === DISPLAY_HEAD_CLASS) {
      const why = whyNoHeads(claim, claimed, host.layout);
      if (why !== null) return refused(why);
      continue;
    }
    const place = host.layout?.devices?.find((one) => one.provider === provider && one.resourceClass === resourceClass);
    if (place === undefined) return refused(unknownDevices(claim));
    const free = freeOf(place, host, devices);
    if (free.length < amount) {
      const { mdev, addresses } = place;
      const has = mdev === null ? addresses.join(", ") : `${mdev.type} of ${mdev.parent}`;
      return refused(
        `the guest needs ${amount} ${resourceClass} of resource provider ${provider}, which has ${has}, of which ${free.length} are free`,
      );
    }
    devices.push(...free.slice(0, amount));
  }
  return { kind: "chosen", devices };
}

/** Displays are no devices: the mediated devices of the same card drive them. Returns why those that the guest gets cannot, or null. */
function whyNoHeads(
  claim: ClaimedDevices,
  claimed: readonly ClaimedDevices[],
  layout: MachineLayout | null,
): string | null {
  const { provider, amount } = claim;
  const place = layout?.devices?.find((one) => one.provider === provider && one.mdev !== null);
  if (place === undefined) return unknownDevices(claim);
  const ofPlace = claimed.filter((one) => one.provider === provider && one.resourceClass === place.resourceClass);
  const devices = ofPlace.reduce((sum, one) => sum + one.amount, 0);
  const heads = devices * (place.headsOfEach ?? 0);
  return amount <= heads
    ? null
    : `the guest needs ${amount} ${DISPLAY_HEAD_CLASS} of resource provider ${provider}, and the ${devices} ${place.resourceClass} that it claims there have ${heads}: ask for both in one request group, and for no more displays than ${place.mdev?.type} has`;
}

/** The devices of a place that the guest may get, the server's own ones first. */
function freeOf({ addresses, mdev }: DevicePlace, host: DeviceHost, chosen: readonly HostDevice[]): HostDevice[] {
  const isGone = new Set([...host.taken, ...chosen.map(deviceName)]);
  if (mdev !== null) {
    const own = host.own.filter((one) => one.kind === "mdev" && one.parent === mdev.parent && one.type === mdev.type);
    const found = host.existing(mdev).map((uuid) => ({ kind: "mdev" as const, uuid, ...mdev, isFound: true as const }));
    // The kernel knows how many can still be made.
    const made = Array.from({ length: NEW_MDEVS_MAX }, (_, index) => ({
      ...{ kind: "mdev" as const, uuid: host.newUuid(chosen.length + index), ...mdev },
    }));
    // Two guests of a server that is resized on its host record the same devices, and the host lists them as well.
    const isListed = new Set(host.own.map(deviceName));
    const others = [...found, ...made].filter((one) => !isListed.has(deviceName(one)));
    return uniqueDevices([...own, ...others]).filter((one) => !isGone.has(deviceName(one)));
  }
  const isOwn = new Set(host.own.map(deviceName));
  const free = [...new Set(addresses)].filter((address) => !isGone.has(address));
  const sorted = [...free.filter((one) => isOwn.has(one)), ...free.filter((one) => !isOwn.has(one))];
  return sorted.map((address) => ({ kind: "pci", address }));
}

/** The devices without those that an earlier one names. */
const uniqueDevices = (devices: readonly HostDevice[]): HostDevice[] => {
  const byName = new Map<string, HostDevice>();
  for (const device of devices) if (!byName.has(deviceName(device))) byName.set(deviceName(device), device);
  return [...byName.values()];
};

/** No card can be divided into more mediated devices. */
const NEW_MDEVS_MAX = 64;

const unknownDevices = ({ amount, resourceClass, provider }: ClaimedDevices): string =>
  `the guest needs ${amount} ${resourceClass} of resource provider ${provider}, and the host's agent does not know which devices these are: start it with --discover, and offer the devices there`;

const refused = (reason: string): NeedsRefused => ({ kind: "refused", reason });
