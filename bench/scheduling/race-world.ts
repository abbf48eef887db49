import type { Shortfall } from "../../core/ledger/allocation-change.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import type { AllocationItem } from "../../core/ledger/model.ts";
import { HostChooser } from "../../core/scheduling/host-chooser.ts";
import { freeCpu } from "../../core/scheduling/weighers/free-cpu.ts";
import { freeMemory } from "../../core/scheduling/weighers/free-memory.ts";
import { OwnSlice } from "../../core/scheduling/weighers/own-slice.ts";
import type { WeighedBy } from "../../core/scheduling/weighers/weigher.ts";
import {
  CLASSES,
  FLAVORS,
  flavorAt,
  hostCapacity,
  hostName,
  inventoryRow,
  providerOf,
  QUERIES,
} from "./mixed-cloud.ts";

/** Number of requests a second that each scheduler handles. */
const REQUESTS_PER_SECOND = 250;
/** Time from the choice to the database's answer, and from there until all views show it, as in a busy cell; in milliseconds. */
const CLAIM_MS = 5;
const LAG_MS = 10;
const TRIES_MAX = 30;

interface Server {
  readonly host: number;
  readonly flavor: number;
}

/** A scheduler with its own view, which lags behind the ledger. */
interface Racer {
  readonly view: LedgerView;
  readonly chooser: HostChooser;
  readonly weighers: readonly WeighedBy[];
}

interface RaceOptions {
  readonly schedulers: number;
  readonly hosts: number;
  /** Share of the VCPUs in use, from 0 to 1. */
  readonly utilisation: number;
  readonly random: () => number;
}

export interface RaceResult {
  readonly claims: number;
  readonly refused: number;
  readonly hostsInUse: number;
}

/**
 * One cell's ledger and schedulers that pack servers into it, in simulated time: a claim is decided by the ledger some time after
 * it was chosen, and shows in the views some time after that. For each new server another one is deleted.
 */
export class RaceWorld {
  readonly #options: RaceOptions;
  readonly #used: Float64Array;
  readonly #servers: Server[] = [];
  readonly #racers: readonly Racer[];
  /** Future events, ordered by time. */
  readonly #events: { readonly atMs: number; readonly happen: () => void }[] = [];
  #nowMs = 0;
  #claims = 0;
  #refused = 0;

  constructor(options: RaceOptions) {
    this.#options = options;
    this.#used = new Float64Array(options.hosts * CLASSES.length);
    this.#fill();
    const names = Array.from({ length: options.schedulers }, (_, index) => `scheduler-${index}`);
    this.#racers = names.map((name) => this.#newRacer(name, names));
  }

  run(requests: number): RaceResult {
    const gapMs = 1_000 / (REQUESTS_PER_SECOND * this.#racers.length);
    for (let request = 0; request < requests; request += 1) {
      const arriveMs = request * gapMs;
      this.#passUntil(arriveMs);
      const racer = this.#racers[Math.floor(this.#options.random() * this.#racers.length)]!;
      this.#release();
      this.#place(racer, { id: `${request}`, flavor: flavorAt(this.#options.random), tries: 0, tried: new Set() });
    }
    this.#passUntil(Number.POSITIVE_INFINITY);
    const hosts = Array.from({ length: this.#options.hosts }, (_, host) => this.#used[host * CLASSES.length]!);
    return { claims: this.#claims, refused: this.#refused, hostsInUse: hosts.filter((used) => used > 0).length };
  }

  /** Packs as well as is possible for servers that arrive one by one: each goes to the first host that it fits on. */
  #fill(): void {
    const { hosts, utilisation, random } = this.#options;
    let total = 0;
    for (let host = 0; host < hosts; host += 1) total += hostCapacity(host, 0);
    const open = Array.from({ length: FLAVORS.length }, () => 0);
    for (let taken = 0; taken < total * utilisation; ) {
      const flavor = flavorAt(random);
      let host = open[flavor]!;
      while (host < hosts && !this.#fits(host, flavor)) host += 1;
      open[flavor] = host;
      if (host === hosts) {
        if (open.every((first) => first === hosts)) return;
        continue;
      }
      this.#use({ host, flavor }, 1);
      this.#servers.push({ host, flavor });
      taken += FLAVORS[flavor]![0];
    }
  }

  #newRacer(name: string, names: readonly string[]): Racer {
    const view = new LedgerView();
    for (let host = 0; host < this.#options.hosts; host += 1) {
      const uuid = providerOf(host);
      view.apply({ kind: "provider-put", uuid, name: hostName(host), parent: null, root: uuid, generation: 0 });
      CLASSES.forEach((_, index) => {
        view.apply(inventoryRow(host, index, this.#used[host * CLASSES.length + index]!));
      });
      view.apply({ kind: "host-put", host: hostName(host), provider: uuid, up: true, disabled: false });
    }
    const slice = new OwnSlice(name);
    slice.setMembers(names);
    const weighers = [
      { weigher: freeCpu, multiplier: -1 },
      { weigher: freeMemory, multiplier: -1 },
      { weigher: slice, multiplier: 2 },
    ];
    return { view, chooser: new HostChooser(), weighers };
  }

  #place(
    racer: Racer,
    request: { readonly id: string; readonly flavor: number; readonly tries: number; readonly tried: Set<string> },
  ): void {
    const { id, flavor, tries, tried } = request;
    const choice = racer.chooser.choose(QUERIES[flavor]!, [{ name: "cell", view: racer.view }], {
      ...{ seed: Math.floor(this.#options.random() * 2 ** 32), alternates: 2, weighers: racer.weighers },
      ...{ spread: 1, spreadTolerance: 0, excludedHosts: new Map([["cell", tried]]) },
    });
    if (choice.kind === "none") return;
    const host = Number(choice.selections[0]!.host.slice("host-".length));
    racer.view.reserve(id, itemsOf(host, flavor));
    this.#after(CLAIM_MS, () => {
      this.#claims += 1;
      if (this.#fits(host, flavor)) {
        this.#use({ host, flavor }, 1);
        this.#servers.push({ host, flavor });
        this.#show(host, () => racer.view.release(id));
        return;
      }
      this.#refused += 1;
      racer.view.release(id);
      racer.view.learnShortfalls(this.#shortfalls(host, flavor));
      tried.add(hostName(host));
      if (tries < TRIES_MAX) this.#place(racer, { ...request, tries: tries + 1 });
    });
  }

  /** Removes a random server. */
  #release(): void {
    const index = Math.floor(this.#options.random() * this.#servers.length);
    const gone = this.#servers[index];
    const last = this.#servers.pop();
    if (!gone || !last) return;
    if (gone !== last) this.#servers[index] = last;
    this.#use(gone, -1);
    this.#show(gone.host, () => {});
  }

  /** Sends the host's present rows to all views, in the order of their commits. */
  #show(host: number, then: () => void): void {
    const rows = CLASSES.map((_, index) => inventoryRow(host, index, this.#used[host * CLASSES.length + index]!));
    this.#after(LAG_MS, () => {
      for (const { view } of this.#racers) view.applyAll(rows);
      then();
    });
  }

  #fits(host: number, flavor: number): boolean {
    const size = FLAVORS[flavor]!;
    for (let index = 0; index < size.length; index += 1) {
      if (this.#used[host * CLASSES.length + index]! + size[index]! > hostCapacity(host, index)) return false;
    }
    return true;
  }

  #shortfalls(host: number, flavor: number): Shortfall[] {
    return CLASSES.flatMap((name, index) => {
      const requested = FLAVORS[flavor]![index]!;
      const used = this.#used[host * CLASSES.length + index]!;
      const limit = hostCapacity(host, index);
      if (used + requested <= limit) return [];
      return [{ provider: providerOf(host), resourceClass: name, reason: "capacity", requested, used, limit }];
    });
  }

  #use({ host, flavor }: Server, sign: 1 | -1): void {
    CLASSES.forEach((_, index) => {
      const at = host * CLASSES.length + index;
      this.#used[at] = this.#used[at]! + sign * FLAVORS[flavor]![index]!;
    });
  }

  #after(ms: number, happen: () => void): void {
    const atMs = this.#nowMs + ms;
    let place = this.#events.length;
    while (place > 0 && this.#events[place - 1]!.atMs > atMs) place -= 1;
    this.#events.splice(place, 0, { atMs, happen });
  }

  #passUntil(ms: number): void {
    while (this.#events.length > 0 && this.#events[0]!.atMs <= ms) {
      const { atMs, happen } = this.#events.shift()!;
      this.#nowMs = atMs;
      happen();
    }
    if (Number.isFinite(ms)) this.#nowMs = ms;
  }
}

function itemsOf(host: number, flavor: number): AllocationItem[] {
  return CLASSES.map((name, index) => ({
    provider: providerOf(host),
    resourceClass: name,
    amount: FLAVORS[flavor]![index]!,
  }));
}
