import type { PciDevice } from "./discover-pci.ts";
import { type DividedCard, dividedCards, type MdevOffer } from "./divided-cards.ts";
import type { Warn } from "./host-files.ts";
import type { InspectedHost } from "./inspect-host.ts";
import type { InterfaceBandwidth } from "./network-bandwidth.ts";
import { type PhysicalNetwork, physicalNetworkTrait } from "./physical-network-trait.ts";
import type { TreeProvider } from "./tree-provider.ts";

/** Which devices are offered to guests. */
export interface PciOffer {
  /** Null offers virtual functions, and accelerators without a display. */
  readonly pciDevices: readonly DeviceSpecification[] | null;
  /** Types of mediated devices that are offered to guests, in order of preference: a card is divided into one type only. */
  readonly mdevOffers: readonly MdevOffer[];
  /** The physical networks that cards are connected to, each with the network interface or the address of a card. */
  readonly physicalNetworks: readonly PhysicalNetwork[];
  /** The network interfaces whose bandwidth is offered. */
  readonly bandwidths: readonly InterfaceBandwidth[];
}

/** Devices that are offered to guests, as an operator names them. Of several specifications of a device the first one counts. */
export interface DeviceSpecification {
  /** `vendor:product` or an address, in lower case. A physical function stands for its virtual functions. */
  readonly device: string;
  /** The class that the devices are offered as, or null for the usual one. */
  readonly resourceClass: string | null;
  /** Traits of the devices, which their provider gets. */
  readonly traits: readonly string[];
}

/** The provider of a device, and the NUMA node near it, or null when no node is near. */
export interface DeviceProvider {
  readonly numaNode: number | null;
  readonly provider: TreeProvider;
  /** The PCI functions that guests get of each class. */
  readonly functions: Readonly<Record<string, readonly string[]>>;
  /** The mediated devices that are made of the device, or null. */
  readonly divided: Pick<DividedCard, "type" | "resourceClass" | "heads"> | null;
  /** The vendor and the product of the virtual functions of a network card, and its physical network. Null where they are unknown, and for other devices. */
  readonly vendorInfo: string | null;
  readonly physicalNetwork: string | null;
}

const NETWORK_CLASS = "02";
/** PCI classes of 3D controllers and processing accelerators, which a host does not use itself. */
const ACCELERATOR_CLASSES = ["0302", "1200"];

/**
 * Makes one provider for each device, named by its address. Virtual functions are units of their physical function's provider, as in Nova,
 * and a physical function that has some is not offered itself. Virtual functions of network cards are SRIOV_NET_VF, other devices are
 * CUSTOM_PCI_<VENDOR>_<PRODUCT>, unless their specification names another class.
 */
export function pciProviders({ pci }: InspectedHost, offer: PciOffer, warn: Warn): readonly DeviceProvider[] {
  const devices = pci ?? [];
  warnOfUnused(devices, offer, warn);
  warnOfAlike(offer, warn);
  const cards = dividedCards(devices, offer.mdevOffers, warn);
  return devices.flatMap((device) => {
    const vfs = devices.filter((one) => one.physicalFunction === device.address);
    const divided = cards.get(device.address) ?? null;
    // A virtual function that is divided into mediated devices has its own provider.
    const whole = vfs.filter((one) => !cards.has(one.address) && !isLeftOut(one, offer));
    const offered = divided !== null ? [] : offeredFunctions(device, { vfs, whole }, offer);
    const functions = byClass(offered);
    const inventories = divided?.inventories ?? totalsOf(functions);
    if (Object.keys(inventories).length === 0) return [];
    const isNic = inventories.SRIOV_NET_VF !== undefined;
    const physicalNetwork = isNic ? networkOf(device, offer, warn) : null;
    const ofNetwork = physicalNetwork === null ? [] : [physicalNetworkTrait(physicalNetwork)];
    const traits = [
      ...["COMPUTE_MANAGED_PCI_DEVICE", ...(isNic ? ["HW_NIC_SRIOV", ...ofNetwork] : [])],
      ...commonTraits(device, offered, warn),
    ];
    const [first] = functions.SRIOV_NET_VF ?? [];
    const vf = vfs.find(({ address }) => address === first);
    return [
      {
        ...{ numaNode: device.numaNode, functions, divided },
        ...{ vendorInfo: vf === undefined ? null : vendorInfoOf(vf), physicalNetwork },
        provider: { name: device.address, inventories, traits: [...new Set(divided?.traits ?? traits)] },
      },
    ];
  });
}

function networkOf({ address, nics }: PciDevice, { physicalNetworks }: PciOffer, warn: Warn): string | null {
  const names = [address.toLowerCase(), ...nics.map(({ name }) => name)];
  const own = physicalNetworks.filter(({ card }) => names.includes(card)).map(({ name }) => name);
  const [first = null, ...others] = new Set(own);
  if (others.length > 0)
    warn(
      `physical-networks connects ${address} to several networks: it counts as connected to ${first}, and not to ${others.join(",")}`,
    );
  return first;
}

const vendorInfoOf = ({ vendor, device }: PciDevice): string | null =>
  vendor === null || device === null ? null : `${vendor}:${device}`;

/** A PCI function that guests get, with its class. */
interface OfferedFunction {
  readonly address: string;
  readonly resourceClass: string;
  readonly traits: readonly string[];
}

/** The functions of a card that are offered: its virtual ones if it has any, otherwise itself. */
function offeredFunctions(
  device: PciDevice,
  { vfs, whole }: { readonly vfs: readonly PciDevice[]; readonly whole: readonly PciDevice[] },
  offer: PciOffer,
): readonly OfferedFunction[] {
  // A virtual function whose physical function is not visible (in a guest, for example) counts as a device.
  if (vfs.length === 0 && device.physicalFunction !== null) return [];
  const candidates = vfs.length === 0 ? [{ one: device, parent: null }] : whole.map((one) => ({ one, parent: device }));
  return candidates.flatMap(({ one, parent }) => {
    const specification = specificationOf(one, parent, offer);
    if (specification === null) return [];
    const isPort = parent?.class?.startsWith(NETWORK_CLASS) === true;
    const resourceClass = specification.resourceClass ?? (isPort ? "SRIOV_NET_VF" : classOf(one));
    return resourceClass === null ? [] : [{ address: one.address, resourceClass, traits: specification.traits }];
  });
}

/**
 * Whether a virtual function is offered only if `--pci-devices` names it: it supports a type of mediated devices that is enabled for other functions, and belongs to the
 * driver that divides the card.
 */
const isLeftOut = ({ mdevTypes }: PciDevice, { pciDevices, mdevOffers }: PciOffer): boolean =>
  pciDevices === null && mdevTypes.some(({ type }) => mdevOffers.some((offer) => offer.type === type));

/** How a device is offered to guests, or null when it is not. A virtual function is also offered when its physical function is named. */
function specificationOf(
  device: PciDevice,
  parent: PciDevice | null,
  { pciDevices }: PciOffer,
): Omit<DeviceSpecification, "device"> | null {
  const names = [device, ...(parent === null ? [] : [parent])].flatMap(namesOf);
  if (pciDevices !== null) return pciDevices.find((one) => names.includes(one.device)) ?? null;
  const isOffered = parent !== null || ACCELERATOR_CLASSES.some((start) => device.class?.startsWith(start));
  return isOffered ? { resourceClass: null, traits: [] } : null;
}

/** The traits that all functions of a card have, since a claim of its provider may get any of them. */
function commonTraits(card: PciDevice, functions: readonly OfferedFunction[], warn: Warn): readonly string[] {
  const all = [...new Set(functions.flatMap(({ traits }) => traits))];
  const common = all.filter((name) => functions.every(({ traits }) => traits.includes(name)));
  const others = all.filter((name) => !common.includes(name));
  if (others.length > 0)
    warn(
      `pci-devices gives only some functions of ${card.address} the traits ${others.join(",")}: the card does not get them, since guests get any of its functions`,
    );
  return common;
}

function namesOf({ address, vendor, device }: PciDevice): readonly string[] {
  return [address.toLowerCase(), `${vendor}:${device}`];
}

const totalsOf = (functions: DeviceProvider["functions"]): TreeProvider["inventories"] =>
  Object.fromEntries(
    Object.entries(functions).map(([resourceClass, addresses]) => [resourceClass, { total: addresses.length }]),
  );

function byClass(functions: readonly OfferedFunction[]): DeviceProvider["functions"] {
  const found = Map.groupBy(functions, ({ resourceClass }) => resourceClass);
  return Object.fromEntries(Array.from(found, ([name, some]) => [name, some.map(({ address }) => address)]));
}

function classOf({ vendor, device }: PciDevice): string | null {
  return vendor === null || device === null ? null : `CUSTOM_PCI_${vendor}_${device}`.toUpperCase();
}

function warnOfUnused(devices: readonly PciDevice[], offer: PciOffer, warn: Warn): void {
  const { pciDevices, mdevOffers, physicalNetworks, bandwidths } = offer;
  const cards = new Set(devices.flatMap(({ address, nics }) => [address, ...nics.map(({ name }) => name)]));
  // An interface whose bandwidth is stated may be any, such as a bond.
  const stated = new Set(bandwidths.filter((one) => one.stated !== null).map((one) => one.interfaceName));
  const strangers = physicalNetworks.map(({ card }) => card).filter((card) => !cards.has(card) && !stated.has(card));
  if (strangers.length > 0) warn(`physical-networks names cards that the host does not have: ${strangers.join(",")}`);
  const names = new Set(devices.flatMap(namesOf));
  const missing = pciDevices?.map((one) => one.device).filter((name) => !names.has(name)) ?? [];
  if (missing.length > 0) warn(`pci-devices names devices that the host does not have: ${missing.join(",")}`);
  const types = new Set(devices.flatMap((device) => device.mdevTypes.map((one) => one.type)));
  const unknown = mdevOffers.map(({ type }) => type).filter((type) => !types.has(type));
  if (unknown.length > 0) warn(`enabled-mdev-types names types that no device has: ${unknown.join(",")}`);
  const absent = mdevOffers.flatMap(({ addresses }) => addresses.filter((address) => !names.has(address)));
  if (absent.length > 0) warn(`mdev-device-addresses names cards that the host does not have: ${absent.join(",")}`);
}

/** Networks with the same trait are one network to schedulers, so a port of the one may get a function of the other. */
function warnOfAlike({ physicalNetworks }: PciOffer, warn: Warn): void {
  const names = new Set(physicalNetworks.map(({ name }) => name));
  for (const [trait, alike] of Map.groupBy(names, physicalNetworkTrait))
    if (alike.length > 1)
      warn(
        `physical-networks names ${alike.join(" and ")}, which become the same trait, ${trait}: servers of the one get functions of the other. Rename one of them, also in Neutron`,
      );
}
