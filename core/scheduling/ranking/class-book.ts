import type { CellFilters } from "../filters/cell-filters.ts";
import type { HostFilter } from "../filters/host-filter.ts";
import type { HostRequest } from "../host-request.ts";
import { SPEC_PARTS, type SpecPart, specKey } from "../spec-parts.ts";
import { countsAnywhere } from "../weighers/host-multiplier.ts";
import type { WeighedBy } from "../weighers/weigher.ts";
import type { CellHosts } from "./cell-ranking.ts";
import { type ClassAsk, HostClass } from "./host-class.ts";
import { RankingScratch } from "./ranking-scratch.ts";

/** Maximum number of numbered queries. Beyond it all numbers and classes are dropped. */
const QUERIES_MAX = 10_000;
/** Maximum number of lists of cells that are recognised without comparing names. */
const LISTS_MAX = 8;

interface KeptClass {
  readonly hosts: HostClass;
  usedAt: number;
  /** The memory of the class in bytes when it was last used. */
  bytes: number;
}

export interface ClassLimits {
  readonly classesMax: number;
  readonly memoryBytesMax: number;
  /** Allows more than `memoryBytesMax` to a scheduler of many hosts, so that the usual flavors have room for their classes. 0 by default. */
  readonly memoryBytesOfHost?: number;
}

/** A class takes some 35 bytes for each host that fits. */
export const DEFAULT_CLASS_LIMITS: ClassLimits = {
  classesMax: 1_000,
  memoryBytesMax: 192 * 2 ** 20,
  memoryBytesOfHost: 1_024,
};

/**
 * The classes of recent requests, within limits of number and memory. The least recently used classes are dropped and made again when they
 * are needed. When filters or weighers change, all classes are dropped.
 */
export class ClassBook {
  readonly #limits: ClassLimits;
  readonly #scratch = new RankingScratch();
  readonly #classes = new Map<string, KeptClass>();
  readonly #requestNumbers = new Map<string, number>();
  #numberOf = new WeakMap<HostRequest, number>();
  /** By the names of the cells. */
  readonly #listNumbers = new Map<string, number>();
  /** Lists of cells with their numbers, the last used first. */
  readonly #lists: { readonly cells: readonly CellHosts[]; readonly number: number }[] = [];
  #filters: readonly HostFilter[] = [];
  #weighers: readonly WeighedBy[] = [];
  /** By filter name: the parts of the spec that it reads. */
  #reads: ReadonlyMap<string, readonly SpecPart[]> = new Map();
  /** Names of filters that need not be applied to hosts that passed the scan. */
  #prefilterNames: ReadonlySet<string> = new Set();
  /** Weighers that read the spec. */
  #readers: readonly WeighedBy[] = [];
  #uses = 0;
  #memoryBytes = 0;

  constructor(limits: ClassLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#classes.size;
  }

  get memoryBytes(): number {
    return this.#memoryBytes;
  }

  /** How often the present classes had to scan all hosts. */
  get timesMade(): number {
    let times = 0;
    for (const { hosts } of this.#classes.values()) times += hosts.timesMade;
    return times;
  }

  /**
   * The request's class over these cells, brought up to date with their views. `bound` are the request's filters over these cells. Every
   * ranked host has passed those filters that decide alike for all requests of the class.
   */
  classOf(ask: ClassAsk, cells: readonly CellHosts[], bound: CellFilters): HostClass {
    this.#follow(ask);
    this.#scratch.watch = ask.watch ?? null;
    const key = this.#keyOf(ask, cells, bound);
    this.#uses += 1;
    let known = this.#classes.get(key);
    if (!known || !isOver(known.hosts, cells)) {
      this.#forget(key);
      known = { hosts: new HostClass(ask, cells), usedAt: 0, bytes: 0 };
      this.#classes.set(key, known);
    }
    known.usedAt = this.#uses;
    known.hosts.refresh(this.#scratch, (cell) =>
      bound.kindOf(cell).filter(({ name }) => !this.#prefilterNames.has(name)),
    );
    this.#memoryBytes -= known.bytes;
    known.bytes = known.hosts.memoryBytes;
    this.#memoryBytes += known.bytes;
    this.#forgetOld(cells);
    return known.hosts;
  }

  #forget(key: string): void {
    this.#memoryBytes -= this.#classes.get(key)?.bytes ?? 0;
    this.#classes.delete(key);
  }

  #forgetAll(): void {
    this.#memoryBytes = 0;
    this.#classes.clear();
  }

  #follow({ filters, weighers }: ClassAsk): void {
    if (filters === this.#filters && weighers === this.#weighers) return;
    const same = isSame(filters, this.#filters, Object.is) && isSame(weighers, this.#weighers, countsAlike);
    this.#filters = filters;
    this.#weighers = weighers;
    if (same) return;
    this.#forgetAll();
    this.#reads = new Map(filters.map(({ name, reads }) => [name, reads ?? SPEC_PARTS]));
    this.#prefilterNames = new Set(filters.filter(({ isPrefilter }) => isPrefilter === true).map(({ name }) => name));
    this.#readers = weighers.filter(({ weigher }) => (weigher.reads?.length ?? 0) > 0);
  }

  /**
   * The key contains only the parts of the spec that are read. A filter that does not apply to the request reads nothing, nor does a
   * weigher whose multiplier is 0 everywhere.
   */
  #keyOf({ hostRequest, spec }: ClassAsk, cells: readonly CellHosts[], bound: CellFilters): string {
    let key = `${this.#requestNumber(hostRequest)}/${this.#listNumber(cells)}`;
    if (!spec) return key;
    const parts = new Set<SpecPart>();
    for (const reader of this.#readers) {
      if (countsAnywhere(reader, cells)) for (const part of reader.weigher.reads ?? []) parts.add(part);
    }
    for (const name of bound.kindNames()) for (const part of this.#reads.get(name) ?? SPEC_PARTS) parts.add(part);
    if (parts.size > 0) key += ` ${specKey(spec, parts)}`;
    return spec.forcedHost === "" ? key : `${key} unfiltered`;
  }

  /** Equal queries get equal numbers. A known object is found without comparing contents. */
  #requestNumber(hostRequest: HostRequest): number {
    const known = this.#numberOf.get(hostRequest);
    if (known !== undefined) return known;
    if (this.#requestNumbers.size >= QUERIES_MAX) {
      this.#requestNumbers.clear();
      this.#numberOf = new WeakMap();
      this.#forgetAll();
    }
    const text = JSON.stringify(hostRequest, flatten);
    const number = this.#requestNumbers.get(text) ?? this.#requestNumbers.size;
    this.#requestNumbers.set(text, number);
    this.#numberOf.set(hostRequest, number);
    return number;
  }

  /** Lists of cells with equal names get equal numbers. A list of the same cells as a recent one is found without reading their names. */
  #listNumber(cells: readonly CellHosts[]): number {
    const at = this.#lists.findIndex((list) => isSame(list.cells, cells, Object.is));
    const known = this.#lists[at];
    if (known !== undefined) {
      if (at > 0) this.#lists.unshift(...this.#lists.splice(at, 1));
      return known.number;
    }
    if (this.#listNumbers.size >= QUERIES_MAX) {
      this.#listNumbers.clear();
      this.#lists.length = 0;
      this.#forgetAll();
    }
    const names = cells.map(({ name }) => name).join("/");
    const number = this.#listNumbers.get(names) ?? this.#listNumbers.size;
    this.#listNumbers.set(names, number);
    this.#lists.unshift({ cells: [...cells], number });
    this.#lists.length = Math.min(this.#lists.length, LISTS_MAX);
    return number;
  }

  #forgetOld(cells: readonly CellHosts[]): void {
    const { classesMax, memoryBytesMax, memoryBytesOfHost = 0 } = this.#limits;
    const isWithin = this.#classes.size <= classesMax && this.#memoryBytes <= memoryBytesMax;
    if (isWithin) return;
    const hosts = cells.reduce((sum, { view }) => sum + view.slots.rootCount, 0);
    const bytesMax = Math.max(memoryBytesMax, hosts * memoryBytesOfHost);
    while (this.#classes.size > 1) {
      const isTooMuch = this.#classes.size > classesMax || this.#memoryBytes > bytesMax;
      if (!isTooMuch) return;
      let oldest = "";
      let usedAt = Number.POSITIVE_INFINITY;
      for (const [key, known] of this.#classes) {
        if (known.usedAt >= usedAt) continue;
        oldest = key;
        usedAt = known.usedAt;
      }
      this.#forget(oldest);
    }
  }
}

function isOver({ rankings }: HostClass, cells: readonly CellHosts[]): boolean {
  if (rankings.length !== cells.length) return false;
  for (let index = 0; index < cells.length; index += 1) {
    const known = rankings[index]!.cell;
    const cell = cells[index]!;
    if (known === cell) continue;
    if (known.view !== cell.view || known.facts !== cell.facts || known.name !== cell.name) return false;
  }
  return true;
}

function isSame<Item>(one: readonly Item[], other: readonly Item[], alike: (a: Item, b: Item) => boolean): boolean {
  return one.length === other.length && one.every((item, index) => alike(item, other[index]!));
}

function countsAlike(one: WeighedBy, other: WeighedBy): boolean {
  return one.weigher === other.weigher && one.multiplier === other.multiplier && one.option === other.option;
}

function flatten(_: string, value: unknown): unknown {
  if (value instanceof Map) return [...value].sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
  if (value instanceof Set) return [...value].sort();
  return value;
}
