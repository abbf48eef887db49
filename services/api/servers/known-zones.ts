import type { Clock } from "../../../runtime/clock.ts";
import { type HostZones, hostZones, readHostZones } from "../aggregates/host-zones.ts";
import type { OperatorStores } from "../ports.ts";

type ZoneStores = Pick<OperatorStores, "aggregates" | "settings">;

const NO_ZONES = hostZones([], "nova");

/** The zones that new servers may name, as of at most `cacheMs` ago. A name that is not among them is looked up anew. */
export class KnownZones {
  readonly #stores: ZoneStores | null;
  readonly #clock: Clock;
  readonly #cacheMs: number;
  #zones: HostZones = NO_ZONES;
  #readAtMs = Number.NEGATIVE_INFINITY;

  /** Without stores there is the default zone alone. */
  constructor(
    deps: { readonly stores: ZoneStores | null; readonly clock: Clock },
    options: { readonly cacheMs: number },
  ) {
    this.#stores = deps.stores;
    this.#clock = deps.clock;
    this.#cacheMs = options.cacheMs;
  }

  async has(zone: string): Promise<boolean> {
    const isFresh = this.#clock.monotonic() - this.#readAtMs < this.#cacheMs;
    if (isFresh && isAmong(this.#zones, zone)) return true;
    await this.#read();
    return isAmong(this.#zones, zone);
  }

  async #read(): Promise<void> {
    if (this.#stores === null) return;
    const readAtMs = this.#clock.monotonic();
    this.#zones = await readHostZones(this.#stores);
    this.#readAtMs = readAtMs;
  }
}

function isAmong({ names, defaultZone }: HostZones, zone: string): boolean {
  return zone === defaultZone || names.includes(zone);
}
