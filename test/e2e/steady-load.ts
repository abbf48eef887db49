import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { ComputeApi } from "./client.ts";

const EVERY_MS = 150;
const LOOK_MS = 150;

/** The result of a load. Times are in milliseconds. */
export interface LoadReport {
  readonly accepted: readonly string[];
  /** Calls that were answered with an error or not at all, so that nothing was promised. */
  readonly refused: number;
  /** The longest times in which no call was accepted and in which no server became ACTIVE. */
  readonly acceptGapMs: number;
  readonly activeGapMs: number;
}

/** Requests a server several times a second until it is stopped, like a client that ignores failures. */
export class SteadyLoad {
  readonly #api: ComputeApi;
  readonly #everyMs: number;
  readonly #request: Parameters<ComputeApi["boot"]>[0];
  /** Of its servers, so that it looks at no others: the servers of earlier loads would take most of the time of each look. */
  readonly #name = `load-${randomUUID()}`;
  readonly #accepted: { readonly uuid: string; readonly atMs: number }[] = [];
  readonly #active = new Map<string, number>();
  readonly #calls = new Set<Promise<void>>();
  readonly #startedMs = performance.now();
  #refused = 0;
  #asking = true;
  #looking = true;
  readonly #asked: Promise<void>;
  readonly #looked: Promise<void>;

  /** `fake` sets the fake driver's behaviour for each server. */
  constructor(
    api: ComputeApi,
    flavor: string,
    {
      fake,
      everyMs = EVERY_MS,
    }: { readonly fake?: Parameters<ComputeApi["boot"]>[0]["fake"]; readonly everyMs?: number } = {},
  ) {
    this.#api = api;
    this.#everyMs = everyMs;
    this.#request = { flavor, name: this.#name, ...(fake !== undefined && { fake }) };
    this.#asked = this.#ask();
    this.#looked = this.#look();
  }

  get accepted(): number {
    return this.#accepted.length;
  }

  /** How many servers it has seen ACTIVE. */
  get active(): number {
    return this.#active.size;
  }

  /** Stops requesting, and resolves when the accepted servers have ended. */
  async stop(): Promise<LoadReport> {
    this.#asking = false;
    await this.#asked;
    await Promise.all(this.#calls);
    const accepted = this.#accepted.map(({ uuid }) => uuid);
    await this.#api.ended(accepted, this.#name).finally(() => {
      this.#looking = false;
    });
    await this.#looked;
    const gapOf = (times: readonly number[]) => longestGapOf([this.#startedMs, ...times]);
    return {
      accepted,
      refused: this.#refused,
      acceptGapMs: gapOf(this.#accepted.map(({ atMs }) => atMs)),
      activeGapMs: gapOf([...this.#active.values()]),
    };
  }

  async #ask(): Promise<void> {
    while (this.#asking) {
      const call = this.#api.boot(this.#request).then(
        (uuid) => void this.#accepted.push({ uuid, atMs: performance.now() }),
        () => {
          this.#refused += 1;
        },
      );
      const kept = call.finally(() => this.#calls.delete(kept));
      this.#calls.add(kept);
      await delay(this.#everyMs);
    }
  }

  async #look(): Promise<void> {
    while (this.#looking) {
      const servers = await this.#api.list(this.#name).catch(() => []);
      for (const { id, status } of servers) {
        if (status === "ACTIVE" && !this.#active.has(id)) this.#active.set(id, performance.now());
      }
      await delay(LOOK_MS);
    }
  }
}

function longestGapOf(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted.reduce((longest, time, index) => Math.max(longest, time - (sorted[index - 1] ?? time)), 0);
}
