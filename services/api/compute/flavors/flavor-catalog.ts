import type { FlavorRecord } from "../../../../core/stores/api/api-store.ts";
import type { Flavor } from "../../../../proto/gen/berth/shared.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { Identity } from "../../http/identity.ts";
import type { FlavorsPort } from "../../ports.ts";
import { explainBadFlavor } from "./check-extra-specs.ts";

/** A flavor for a new server. */
export interface UsableFlavor {
  readonly flavor: Flavor;
  /** Why the flavor cannot be used (an extra spec can never be satisfied), or null when it can. */
  readonly problem: string | null;
}

interface Entry extends UsableFlavor {
  /** The projects that may use the flavor, or null for all. */
  readonly projects: ReadonlySet<string> | null;
  readonly readAtMs: number;
}

const ENTRIES_MAX = 10_000;

/**
 * The flavors that new servers ask for, cached for `cacheMs`. Changes by this process take effect at once (`forget`), and changes by other
 * processes after at most `cacheMs`. Unknown flavors are not cached.
 */
export class FlavorCatalog {
  readonly #store: Pick<FlavorsPort, "flavor" | "flavorProjects">;
  readonly #clock: Clock;
  readonly #cacheMs: number;
  readonly #entries = new Map<string, Entry>();
  /** Reads that are under way, so that many new servers with one flavor cause one read. */
  readonly #asked = new Map<string, Promise<Entry | null>>();
  /** Rises with each `forget`, so that an answer to an earlier read is not cached. */
  #forgotten = 0;

  constructor(
    deps: { readonly store: Pick<FlavorsPort, "flavor" | "flavorProjects">; readonly clock: Clock },
    options: { readonly cacheMs: number },
  ) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#cacheMs = options.cacheMs;
  }

  /** Returns the flavor, or null when there is none of this id that the caller may use. */
  async find(id: string, by: Pick<Identity, "isAdmin" | "projectId">): Promise<UsableFlavor | null> {
    const entry = this.#fresh(id) ?? (await this.#ask(id));
    return entry !== null && (entry.projects === null || by.isAdmin || entry.projects.has(by.projectId)) ? entry : null;
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
    const projects = record.isPublic ? null : new Set(await this.#store.flavorProjects(id));
    const flavor = flavorOf(record);
    const entry: Entry = { flavor, problem: explainBadFlavor(flavor), projects, readAtMs };
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
