import { seededRandom } from "../core/scheduling/seeded-random.ts";

/** How messages travel. All values may be changed while the world runs. */
export interface Weather {
  delayMsMin: number;
  delayMsMax: number;
  /** Share of the messages that take up to `spikeMs` longer, from 0 to 1. */
  spikeShare: number;
  spikeMs: number;
  /** Share of the messages that are lost. Streams (those of agents) lose none; their messages wait. */
  lossShare: number;
  /** Share of a bus's deliveries that arrive twice. */
  twiceShare: number;
  /** Share of the messages to cells' queues of tasks that their stream stores twice, the second time up to a minute later. */
  copiedShare: number;
}

export const FAIR_WEATHER: Weather = {
  delayMsMin: 0.1,
  delayMsMax: 2,
  spikeShare: 0,
  spikeMs: 0,
  lossShare: 0,
  twiceShare: 0,
  copiedShare: 0,
};

/** How late the second copy of a task's message may be, in milliseconds. */
const COPY_MS_MAX = 60_000;

/** Messages travel between named places: processes, databases, brokers. */
export class Network {
  readonly weather: Weather;
  readonly #random: () => number;
  /** Cuts of one direction each, keyed "from>to". A place may represent all places whose names begin with it. */
  readonly #cuts = new Map<string, { readonly from: Named; readonly to: Named }>();
  readonly #slow = new Map<string, number>();

  constructor(seed: number, weather: Weather) {
    this.#random = seededRandom(seed);
    this.weather = { ...weather };
  }

  /** How long a message takes now, or null when it is lost. */
  leg(from: string, to: string): number | null {
    const delayMs = this.delay(from, to);
    const isLost = this.#random() < this.weather.lossShare;
    return isLost || this.isCut(from, to) ? null : delayMs;
  }

  /** How long a message of a stream takes. Streams lose no messages. */
  delay(from: string, to: string): number {
    const { delayMsMin, delayMsMax, spikeShare, spikeMs } = this.weather;
    const delay = delayMsMin + this.#random() * (delayMsMax - delayMsMin);
    const spike = this.#random() < spikeShare ? this.#random() * spikeMs : 0;
    return delay * Math.max(this.#slow.get(from) ?? 1, this.#slow.get(to) ?? 1) + spike;
  }

  arrivesTwice(): boolean {
    return this.#random() < this.weather.twiceShare;
  }

  /** After how many milliseconds a task's stream stores its message a second time, or null when it does not. */
  copiedAfterMs(): number | null {
    return this.#random() < this.weather.copiedShare ? this.#random() * COPY_MS_MAX : null;
  }

  isCut(from: string, to: string): boolean {
    if (this.#cuts.size === 0) return false;
    for (const cut of this.#cuts.values()) if (isAt(from, cut.from) && isAt(to, cut.to)) return true;
    return false;
  }

  cut(from: string, to: string): void {
    this.#cuts.set(`${from}>${to}`, { from: named(from), to: named(to) });
  }

  join(from: string, to: string): void {
    this.#cuts.delete(`${from}>${to}`);
  }

  /** Multiplies the time of everything to and from a place by `factor`. */
  slow(place: string, factor: number): void {
    if (factor === 1) this.#slow.delete(place);
    else this.#slow.set(place, factor);
  }

  /** Restores normal conditions: nothing is cut or slow. */
  heal(): void {
    this.#cuts.clear();
    this.#slow.clear();
    Object.assign(this.weather, FAIR_WEATHER);
  }
}

/** `cell1` matches `cell1`, `cell1-db`, `cell1-conductor-2` and so on; `*` matches everything. */
interface Named {
  readonly name: string;
  readonly prefix: string;
}

const named = (name: string): Named => ({ name, prefix: name === "*" ? "" : `${name}-` });

function isAt(place: string, { name, prefix }: Named): boolean {
  return place === name || place.startsWith(prefix);
}
