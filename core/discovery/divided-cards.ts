import { DISPLAY_HEAD_CLASS } from "../scheduling/request/display-heads.ts";
import type { MdevType, PciDevice } from "./discover-pci.ts";
import type { Warn } from "./host-files.ts";
import type { TreeProvider } from "./tree-provider.ts";

/** A type of mediated devices that an operator offers to guests. The fields are the options of Nova's sections `[mdev_TYPE]`, and the traits. */
export interface MdevOffer {
  readonly type: string;
  /** VGPU, or a class that the operator has named. */
  readonly resourceClass: string;
  /** Traits of the cards that are divided into the type. */
  readonly traits: readonly string[];
  /** How many devices of the type all cards of the host offer together. Null means as many as they can have. */
  readonly instancesMax: number | null;
  /** The addresses of the cards that are divided into the type, in lower case. Empty for a type that any card may have which no type names. */
  readonly addresses: readonly string[];
}

/** A card that is divided into mediated devices. It has no inventory when it can have none of them, or nobody knows how many. */
export interface DividedCard {
  readonly type: string;
  readonly resourceClass: string;
  readonly traits: readonly string[];
  /** The display heads of each of the devices. 0 when the driver names none. */
  readonly heads: number;
  readonly inventories: TreeProvider["inventories"];
}

/**
 * Decides into which type each card is divided: the one that names the card, or otherwise the first type that the card supports among those that
 * name none. A card has as many devices as exist and can still be made, together with their display heads. With a limit for all cards of the host, the devices
 * that exist come first, and then the cards in their order: so a card's share does not change when guests get devices.
 *
 * Source: `_get_supported_vgpu_types` and `_get_gpu_inventories` in nova/virt/libvirt/driver.py. Nova offers nothing of a card that would exceed the limit.
 */
export function dividedCards(
  devices: readonly PciDevice[],
  offers: readonly MdevOffer[],
  warn: Warn,
): ReadonlyMap<string, DividedCard> {
  const cards = new Map<string, DividedCard>();
  for (const offer of offers) {
    const known: CountedCard[] = [];
    for (const { address, mdevTypes } of devices.filter((device) => offerFor(device, offers) === offer)) {
      const supported = mdevTypes.find(({ type }) => type === offer.type);
      const { type, resourceClass, traits } = offer;
      cards.set(address, { type, resourceClass, traits, heads: 0, inventories: {} });
      if (supported === undefined)
        warn(`mdev-device-addresses divides ${address} into ${type}, which it does not support: it is not offered`);
      else if (supported.available === null || supported.existing === null)
        warn(`${type} of ${address} is not reported: the number that exists or can be created is unknown`);
      else known.push({ address, existing: supported.existing, available: supported.available, supported });
    }
    for (const { card, total } of sharesOf(known, offer.instancesMax)) {
      const heads = headsOf(card.supported);
      const before = cards.get(card.address);
      if (before !== undefined)
        cards.set(card.address, { ...before, heads, inventories: inventoriesOf(before, total, heads) });
    }
  }
  return cards;
}

interface CountedCard {
  readonly address: string;
  readonly existing: number;
  readonly available: number;
  readonly supported: MdevType;
}

/** The type that a card is divided into, or undefined when it is not divided. */
function offerFor({ address, mdevTypes }: PciDevice, offers: readonly MdevOffer[]): MdevOffer | undefined {
  const named = offers.find(({ addresses }) => addresses.includes(address.toLowerCase()));
  if (named !== undefined) return named;
  return offers.find((offer) => offer.addresses.length === 0 && mdevTypes.some(({ type }) => type === offer.type));
}

/** How many devices each card offers, within the limit for all of them. */
function sharesOf(cards: readonly CountedCard[], limit: number | null) {
  let left = limit ?? Number.POSITIVE_INFINITY;
  const take = (wanted: number): number => {
    const taken = Math.min(wanted, left);
    left -= taken;
    return taken;
  };
  const kept = cards.map((card) => ({ card, existing: take(card.existing) }));
  return kept.map(({ card, existing }) => ({ card, total: existing + take(card.available) }));
}

/** The number of displays of each device, which NVIDIA's driver writes as `num_heads=4, frl_config=60, …`. */
function headsOf({ description }: MdevType): number {
  return Number(/(?:^|[\s,])num_heads=(\d{1,3})(?![^\s,])/.exec(description ?? "")?.[1] ?? 0);
}

function inventoriesOf(
  { resourceClass }: Pick<DividedCard, "resourceClass">,
  total: number,
  heads: number,
): TreeProvider["inventories"] {
  if (total === 0) return {};
  return { [resourceClass]: { total }, ...(heads > 0 && { [DISPLAY_HEAD_CLASS]: { total: total * heads } }) };
}
