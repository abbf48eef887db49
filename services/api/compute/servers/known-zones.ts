import { SCHEDULING_SECTION } from "../../../../core/stores/api/settings-store.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { OperatorStores } from "../../ports.ts";
import { type HostZones, hostZones, readHostZones } from "../aggregates/host-zones.ts";

type ZoneStores = Pick<OperatorStores, "aggregates" | "settings">;

const NO_ZONES = hostZones([], "nova");

/**
 * The zones of hosts and the zones that new servers may name, at most `cacheMs` old. An unknown name causes a new read.
 *
 * Cost: after that time two rows by key; everything only when operators have changed something.
 */
export class KnownZones {
  readonly #stores: ZoneStores | null;
  readonly #clock: Clock;
  readonly #cacheMs: number;
  #zones: HostZones = NO_ZONES;
  #readAtMs = Number.NEGATIVE_INFINITY;
  /** The versions of the aggregates and settings from which `#zones` was read. */
  #versions = "";
  #reading: Promise<void> | null = null;

  /** Without stores, only the default zone exists. */
  constructor(
    deps: { readonly stores: ZoneStores | null; readonly clock: Clock },
    options: { readonly cacheMs: number },
  ) {
    this.#stores = deps.stores;
    this.#clock = deps.clock;
    this.#cacheMs = options.cacheMs;
  }

  async has(zone: string): Promise<boolean> {
    if (this.#isFresh && isAmong(this.#zones, zone)) return true;
    // A read that is under way may have begun before the zone was created.
    await this.#reading?.catch(() => undefined);
    await this.#read();
    return isAmong(this.#zones, zone);
  }

  /** Returns the zones for display. While the database is unreachable, returns those that were read last. */
  async current(): Promise<HostZones> {
    if (!this.#isFresh) await this.#read().catch(() => undefined);
    return this.#zones;
  }

  get #isFresh(): boolean {
    return this.#clock.monotonic() - this.#readAtMs < this.#cacheMs;
  }

  /** Reads the zones. Concurrent callers share one read. */
  #read(): Promise<void> {
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #readNow(): Promise<void> {
    if (this.#stores === null) return;
    const { aggregates, settings } = this.#stores;
    const readAtMs = this.#clock.monotonic();
    const [aggregatesVersion, stored] = await Promise.all([aggregates.version(), settings.read(SCHEDULING_SECTION)]);
    const versions = `${aggregatesVersion}/${stored.version}`;
    if (versions !== this.#versions) this.#zones = await readHostZones(this.#stores);
    this.#versions = versions;
    this.#readAtMs = readAtMs;
  }
}

function isAmong({ names, defaultZone }: HostZones, zone: string): boolean {
  return zone === defaultZone || names.includes(zone);
}
