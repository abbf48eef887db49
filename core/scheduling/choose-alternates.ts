import type { AllocationRequest } from "../../proto/gen/berth/shared.ts";
import { seededRandom } from "./seeded-random.ts";

/** The hosts of one cell that passed the sieve and the filters, at positions 0 … count − 1 in an order that stays the same. */
export interface StandbyHosts {
  readonly count: number;
  /** Slot of the root provider, in the cell's view, of the host at a position. By it the rest is asked. */
  root(at: number): number;
  /** More is better. */
  weight(root: number): number;
  /** How often the request would fit there, as far as is worth counting: the more often, the likelier it fits later, too. */
  room(root: number): number;
  /** Up to `most` ways in which the request fits there, the preferred one first; none: it does not fit after all. */
  waysOn(root: number, most: number): readonly AllocationRequest[];
}

export interface AlternateOptions {
  /** Most hosts. */
  readonly most: number;
  /** Of the server: servers of one burst draw differently. */
  readonly seed: number;
  /** Roots of the hosts that were chosen for servers of the same request; the server's own comes first. */
  readonly taken: ReadonlySet<number>;
  /** Name of the failure domain of the host with this root; undefined: it is in none. */
  readonly domainOf?: (root: number) => string | undefined;
}

/** A host that stands by, with the ways to use it in the order to try them; at least one. */
export interface Alternate {
  readonly root: number;
  readonly ways: readonly AllocationRequest[];
}

/** Hosts drawn for each alternate that is wanted; the best of them are taken. */
const DRAWN_PER_ALTERNATE = 8;

/** Hosts tried one by one when too few of the drawn ones fit after all. */
const TRIED_AT_MOST = 256;

/** Hosts whose failure domain is asked for beyond the drawn ones. */
const LOOKED_AT_FOR_DOMAINS = 64;

/** Ways kept of one host: another way helps only against a claim that came between, which seldom happens twice. */
const WAYS_PER_HOST = 2;

/**
 * Chooses the hosts to go to when the chosen one fails: the best of a few that are drawn at random, best first. Were they the best of
 * all, a burst of requests would share two alternates. A host that the request only just fits on is likely to be taken by the time that
 * somebody has to go there: it comes after those with more room. A failure domain that is used already (the chosen host's above
 * all) comes only after those that are not.
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

/** Roots of distinct hosts that are not taken: a part of all even when there are few, so that servers differ. */
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

/** Few draws may miss a failure domain: so the first host of each is drawn, too, from a random place on. */
function drawOtherDomains(
  hosts: StandbyHosts,
  { domainOf, taken, most }: AlternateOptions,
  drawn: number[],
  random: () => number,
): void {
  const known = new Set(drawn.map((root) => domainOf?.(root)));
  const start = Math.floor(random() * hosts.count);
  const steps = Math.min(hosts.count, LOOKED_AT_FOR_DOMAINS);
  // One more than there are alternates: the server's own host has a domain, too.
  for (let step = 0; step < steps && known.size <= most; step += 1) {
    const root = hosts.root((start + step) % hosts.count);
    const domain = domainOf?.(root);
    if (domain === undefined || known.has(domain) || taken.has(root)) continue;
    known.add(domain);
    drawn.push(root);
  }
}

/** Which of the roots has the least used failure domain, then the most room, then the highest weight; of like ones the first. */
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

/** The others one after the other from a place that the seed decides; bounded, as each costs a search in the host's tree. */
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

/** How often each failure domain is used by one server's hosts. */
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
