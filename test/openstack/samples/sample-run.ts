import type { Answer } from "./answer.ts";
import { differences, parseTemplate } from "./match-answer.ts";
import { ADMIN, type SampleCloud } from "./sample-cloud.ts";
import type { SampleLibrary } from "./sample-library.ts";

/** The outcome of each sample of one folder at one microversion: null for a pass, otherwise the fault. */
export type Outcomes = Map<string, string | null>;

/** A script that sends the requests of one folder in meaningful states. */
export type Script = (run: SampleRun) => Promise<void>;

export interface Exchange {
  readonly request?: string;
  readonly answer?: string;
  readonly status?: number;
  readonly values?: Readonly<Record<string, string>>;
  /** The microversion of the request, if it is not that of the folder. */
  readonly minor?: number;
  /** Fields that may differ from the answer's sample, because upstream's work ends before the answer is made. */
  readonly differing?: readonly string[];
  /** Fields that an answer has only while something is under way. */
  readonly optional?: readonly string[];
  /** `user:project` of the caller. By default the one that the sample shows: the user `fake`, or an admin. */
  readonly as?: string;
  /** Changes the request's body where the sample names an object of upstream's test cloud. */
  readonly change?: (body: Answer) => Answer | Promise<Answer>;
}

/** The server that upstream's samples name in the hint `same_host`. */
const NEIGHBOUR = "48e6a9f6-30af-47e0-bc04-acaed113bb4e";

/** One pass through a folder's script at one microversion. A sample counts where it stands: at exactly this microversion. */
export class SampleRun {
  readonly outcomes: Outcomes;
  readonly cloud: SampleCloud;
  readonly minor: number;
  readonly #library: SampleLibrary;
  readonly #folder: string;
  #neighbour = NEIGHBOUR;

  /** Runs of several clouds can have the same outcomes. */
  constructor(
    where: { cloud: SampleCloud; library: SampleLibrary; folder: string; minor: number },
    outcomes: Outcomes = new Map(),
  ) {
    this.outcomes = outcomes;
    this.cloud = where.cloud;
    this.minor = where.minor;
    this.#library = where.library;
    this.#folder = where.folder;
  }

  /** Has the hints of the samples name one of our servers. Its host is that of the server which is created beside it. */
  nameNeighbour(uuid: string): void {
    this.#neighbour = uuid;
  }

  /** Whether the folder has this sample at this microversion or before. */
  has(name: string): boolean {
    return this.#library.newest(this.#folder, name, this.minor) !== null;
  }

  /**
   * Sends a request and judges its samples. Does nothing, and returns null, where the folder has no sample of the request's name so far.
   * An unexpected answer is recorded; the script goes on.
   */
  async send(method: string, path: string, exchange: Exchange): Promise<Answer> {
    const { request, answer, status = 200, values = {}, minor = this.minor } = exchange;
    if (request !== undefined && !this.has(request)) return null;
    if (request === undefined && answer !== undefined && !this.has(answer)) return null;
    let body: unknown;
    if (request !== undefined) {
      const text = this.#text(request).replace(/%\((?:int:)?(\w+)\)s/g, (_all, name) => values[name] ?? "");
      body = JSON.parse(text);
      if (exchange.change !== undefined) body = await exchange.change(body);
    }
    const given = await this.cloud.call(method, path, { body, minor, as: exchange.as ?? this.#callerOf(answer) });
    const wrongStatus =
      given.status === status
        ? null
        : `${method} ${path}: ${given.status} instead of ${status}: ${JSON.stringify(given.json)?.slice(0, 300)}`;
    if (request !== undefined) this.#record(request, wrongStatus);
    if (answer !== undefined && this.has(answer))
      this.#record(answer, wrongStatus ?? this.#compare(answer, given.json, exchange));
    return given.json;
  }

  get(path: string, answer: string, exchange: Omit<Exchange, "answer" | "request"> = {}): Promise<Answer> {
    return this.send("GET", path, { ...exchange, answer });
  }

  /** Sends an action to a server and waits until nothing is under way, unless `waits` is false. */
  async act(server: string, exchange: Exchange, { waits = true } = {}): Promise<Answer> {
    const json = await this.send("POST", `/servers/${server}/action`, { status: 202, ...exchange });
    if (waits && json !== undefined) await this.cloud.settled(server);
    return json;
  }

  /** Whether the folder has this sample at exactly this microversion. */
  hasHere(name: string): boolean {
    return this.#library.newest(this.#folder, name, this.minor)?.minor === this.minor;
  }

  /** Whether the sample, if there is one, contains this text. */
  contains(name: string, text: string): boolean {
    return this.has(name) && this.#text(name).includes(text);
  }

  /** Compares what a request without an answer has done with what it must have done. */
  expectEffect(request: string, shown: unknown, expected: unknown): void {
    const [is, must] = [JSON.stringify(shown), JSON.stringify(expected)];
    this.#record(request, is === must ? null : `the effect is ${is} instead of ${must}`);
  }

  #callerOf(answer: string | undefined): string {
    if (this.#folder === "os-keypairs") return ADMIN;
    return answer !== undefined && this.contains(answer, '"user_id": "fake"') ? "fake:default" : ADMIN;
  }

  #compare(name: string, answer: unknown, { differing = [], optional = [] }: Exchange): string | null {
    // Upstream's test network is `private`, and its name is a key where the addresses of a server are shown.
    const template = this.#text(name)
      .replaceAll('"private"', JSON.stringify(this.cloud.network.name))
      .replaceAll(NEIGHBOUR, this.#neighbour);
    const found = differences(parseTemplate(template, differing), answer).filter(
      (each) => !optional.some((field) => each.endsWith(`.${field} is missing`)),
    );
    return found.length === 0 ? null : found.slice(0, 5).join("; ");
  }

  #text(name: string): string {
    const sample = this.#library.newest(this.#folder, name, this.minor);
    if (sample === null) throw new Error(`${this.#folder} has no sample ${name} at 2.${this.minor}`);
    return sample.text;
  }

  #record(name: string, fault: string | null): void {
    if (this.#library.newest(this.#folder, name, this.minor)?.minor !== this.minor) return;
    // A sample that is sent twice passes when it passes each time.
    this.outcomes.set(name, this.outcomes.get(name) ?? fault);
  }
}
