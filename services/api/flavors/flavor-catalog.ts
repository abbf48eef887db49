import type { FlavorRecord } from "../../../core/cell/api-store.ts";
import type { Flavor } from "../../../proto/gen/berth/shared.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { FlavorsPort } from "../ports.ts";
import { explainBadFlavor } from "./check-extra-specs.ts";

/** A flavor as a new server takes it along. */
export interface UsableFlavor {
  readonly flavor: Flavor;
  /** Why no server can be made of it: an extra spec that asks for what cannot be; null: it can be used. */
  readonly problem: string | null;
}

interface Entry extends UsableFlavor {
  readonly isPublic: boolean;
  readonly readAtMs: number;
}

const ENTRIES_MAX = 10_000;

/**
 * The flavors that new servers ask for, kept for `cacheMs` after they were read. What this process changes it forgets at
 * once (`forget`); what another process changes is noticed here after at most `cacheMs`. An unknown flavor is asked for each time.
 */
export class FlavorCatalog {
  readonly #store: Pick<FlavorsPort, "flavor">;
  readonly #clock: Clock;
  readonly #cacheMs: number;
  readonly #entries = new Map<string, Entry>();
  /** Questions on their way, so that a burst of servers of one flavor asks once. */
  readonly #asked = new Map<string, Promise<Entry | null>>();
  /** Rises with each `forget`: an answer that was asked for before it is not kept. */
  #forgotten = 0;

  constructor(
    deps: { readonly store: Pick<FlavorsPort, "flavor">; readonly clock: Clock },
    options: { readonly cacheMs: number },
  ) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#cacheMs = options.cacheMs;
  }

  /** The flavor, or null: there is none of this id, or not for those who are no admins. */
  async find(id: string, options: { readonly isAdmin: boolean }): Promise<UsableFlavor | null> {
    const entry = this.#fresh(id) ?? (await this.#ask(id));
    return entry !== null && (entry.isPublic || options.isAdmin) ? entry : null;
  }

  forget(id: string): void {
    this.#forgotten += 1;
    this.#entries.delete(id);
    this.#asked.delete(id);
  }

  #fresh(id: string): Entry | null {
    const entry = this.#entries.get(id);
    return entry !== undefined && this.#clock.monotonic() - entry.readAtMs < this.#cacheMs ? entry : null;
  }

  #ask(id: string): Promise<Entry | null> {
    const asked = this.#asked.get(id);
    if (asked !== undefined) return asked;
    const answer = this.#read(id).finally(() => {
      if (this.#asked.get(id) === answer) this.#asked.delete(id);
    });
    this.#asked.set(id, answer);
    return answer;
  }

  async #read(id: string): Promise<Entry | null> {
    const readAtMs = this.#clock.monotonic();
    const forgotten = this.#forgotten;
    const record = await this.#store.flavor(id);
    if (record === null) return null;
    const flavor = flavorOf(record);
    const entry: Entry = { flavor, problem: explainBadFlavor(flavor), isPublic: record.isPublic, readAtMs };
    if (forgotten === this.#forgotten) {
      if (this.#entries.size >= ENTRIES_MAX) this.#entries.clear();
      this.#entries.set(id, entry);
    }
    return entry;
  }
}

function flavorOf(record: FlavorRecord): Flavor {
  const { id, name, vcpus, memoryMib, diskGib, ephemeralGib, swapMib, extraSpecs } = record;
  return { id, name, vcpus, memoryMib, diskGib, ephemeralGib, swapMib, extraSpecs };
}
