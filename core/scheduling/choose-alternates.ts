import type { AllocationRequest } from "../../proto/gen/berth/shared.ts";
import { seededRandom } from "./seeded-random.ts";

/** The hosts of one cell that passed the checks of the ledger and the filters, at positions 0 … count − 1 in a stable order. */
export interface StandbyHosts {
  readonly count: number;
  /** Slot, in the cell's view, of the root provider of the host at a position. The other methods take this root. */
  root(at: number): number;
  /** The host's weight; more is better. */
  weight(root: number): number;
  /** How many such requests would fit there, up to a small maximum. The more would fit, the likelier one still fits later. */
  room(root: number): number;
  /**
   * Up to `most` ways in which the request fits there, with the preferred one first. An empty list means that it does not fit after all.
   */
  waysOn(root: number, most: number): readonly AllocationRequest[];
}

export interface AlternateOptions {
  /** Maximum number of alternate hosts. */
  readonly most: number;
  /** Seed of the server. Different seeds let the servers of one burst draw different hosts. */
  readonly seed: number;
  /** Roots of the hosts that were chosen for servers of the same request; the server's own comes first. */
  readonly taken: ReadonlySet<number>;
  /** Name of the failure domain of the host with this root, or undefined when it is in none. */
  readonly domainOf?: (root: number) => string | undefined;
}

/** An alternate host with at least one way to use it, in the order in which to try them. */
export interface Alternate {
  readonly root: number;
  readonly ways: readonly AllocationRequest[];
}

/** Number of hosts drawn for each requested alternate. The best of them are taken. */
const DRAWN_PER_ALTERNATE = 8;

/** Maximum number of hosts tried one by one when too few of the drawn ones fit after all. */
const TRIED_AT_MOST = 256;

/** Maximum number of hosts, beyond the drawn ones, whose failure domain is looked up. */
const LOOKED_AT_FOR_DOMAINS = 64;

/** Number of ways kept for each host. Another way helps only against a claim made in between, which seldom happens twice. */
const WAYS_PER_HOST = 2;

/**
 * Chooses the hosts to try when the chosen one fails: the best of a few that are drawn at random, best first. If they were the best of all
 * hosts, a burst of requests would share two alternates. A host with room for just one such request is likely to be full by the time it is
 * needed, so it comes after hosts with more room. A host in a failure domain that the server already uses, above all the chosen host's
 * domain, comes after hosts in other domains.
 *
 * Cost: independent of the number of hosts unless hardly any of them fits.
 */
export function chooseAlternates(hosts: StandbyHosts, options: AlternateOptions): readonly Alternate[] {
  if (options.most <= 0 || hosts.count === 0) return [];
  const random = seededRandom(options.seed ^ 0x5bd1e995);
  const drawn = drawHosts(hosts, options, random);
  if (options.domainOf) drawOtherDomains(hosts, options, drawn, random);
  const rooms = drawn.map((root) => hosts.room(root));
  const domains = new DomainCounts(options);
  const chosen: Alternate[] = [];
  while (chosen.length < options.most && drawn.length > 0) {
    const best = indexOfBest(drawn, rooms, hosts, domains);
    const [root] = drawn.splice(best, 1);
    rooms.splice(best, 1);
    const ways = hosts.waysOn(root!, WAYS_PER_HOST);
    if (ways.length === 0) continue;
    domains.use(root!);
    chosen.push({ root: root!, ways });
  }
  if (chosen.length < options.most) fillUp(hosts, options, chosen);
  return chosen.sort((a, b) => hosts.weight(b.root) - hosts.weight(a.root));
}

/** Draws roots of distinct hosts that are not taken. Even when there are few hosts it draws only a part of them, so that servers differ. */
function drawHosts(hosts: StandbyHosts, { most, taken }: AlternateOptions, random: () => number): number[] {
  const { count } = hosts;
  const wanted = Math.min(most * DRAWN_PER_ALTERNATE, Math.max(most * 2, Math.ceil(count / 2)));
  const drawn: number[] = [];
  if (count <= wanted + taken.size) {
    for (let at = 0; at < count; at += 1) drawn.push(hosts.root(at));
    return drawn.filter((root) => !taken.has(root));
  }
  for (let draws = 0; draws < wanted * 4 && drawn.length < wanted; draws += 1) {
    const root = hosts.root(Math.floor(random() * count));
    if (!drawn.includes(root) && !taken.has(root)) drawn.push(root);
  }
  return drawn;
}

/** A few random draws may miss a failure domain. So this also draws the first host of each further domain, from a random position on. */
function drawOtherDomains(
  hosts: StandbyHosts,
  { domainOf, taken, most }: AlternateOptions,
  drawn: number[],
  random: () => number,
): void {
  const known = new Set(drawn.map((root) => domainOf?.(root)));
  const start = Math.floor(random() * hosts.count);
  const steps = Math.min(hosts.count, LOOKED_AT_FOR_DOMAINS);
  // The limit is one more than the number of alternates, because the server's own host has a domain too.
  for (let step = 0; step < steps && known.size <= most; step += 1) {
    const root = hosts.root((start + step) % hosts.count);
    const domain = domainOf?.(root);
    if (domain === undefined || known.has(domain) || taken.has(root)) continue;
    known.add(domain);
    drawn.push(root);
  }
}

/** Index of the root with the least used failure domain, then the most room, then the highest weight. The first of equal roots wins. */
function indexOfBest(
  roots: readonly number[],
  rooms: readonly number[],
  hosts: StandbyHosts,
  domains: DomainCounts,
): number {
  let best = 0;
  let bestUses = domains.uses(roots[0]!);
  for (let index = 1; index < roots.length; index += 1) {
    const uses = domains.uses(roots[index]!);
    if (uses > bestUses) continue;
    if (uses === bestUses && !isBetter(index)) continue;
    best = index;
    bestUses = uses;
  }
  return best;

  function isBetter(index: number): boolean {
    const more = rooms[index]! - rooms[best]!;
    return more === 0 ? hosts.weight(roots[index]!) > hosts.weight(roots[best]!) : more > 0;
  }
}

/**
 * Tries the other hosts one after the other, from a position that the seed decides. Their number is bounded, since each costs a search in
 * the host's tree.
 */
function fillUp(hosts: StandbyHosts, options: AlternateOptions, chosen: Alternate[]): void {
  const start = options.seed % hosts.count;
  const known = new Set(chosen.map((alternate) => alternate.root));
  const steps = Math.min(hosts.count, TRIED_AT_MOST);
  for (let step = 0; step < steps && chosen.length < options.most; step += 1) {
    const root = hosts.root((start + step) % hosts.count);
    if (known.has(root) || options.taken.has(root)) continue;
    const ways = hosts.waysOn(root, WAYS_PER_HOST);
    if (ways.length > 0) chosen.push({ root, ways });
  }
}

/** How often each failure domain is used by the hosts of one server. */
class DomainCounts {
  readonly #domainOf: (root: number) => string | undefined;
  readonly #counts = new Map<string, number>();

  constructor({ domainOf, taken }: AlternateOptions) {
    this.#domainOf = domainOf ?? (() => undefined);
    const [own] = taken;
    if (own !== undefined) this.use(own);
  }

  uses(root: number): number {
    const domain = this.#domainOf(root);
    return domain === undefined ? 0 : (this.#counts.get(domain) ?? 0);
  }

  use(root: number): void {
    const domain = this.#domainOf(root);
    if (domain !== undefined) this.#counts.set(domain, 1 + (this.#counts.get(domain) ?? 0));
  }
}
