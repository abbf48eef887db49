import type { FlavorRecord } from "../../core/cell/api-store.ts";
import type { SimCloud } from "./sim-cloud.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

const SIZES = [1, 2, 4] as const;

/** One flavor a size, in VCPUs. */
export const SIM_FLAVORS: FlavorRecord[] = SIZES.map((vcpus) => ({
  id: `${vcpus}`,
  name: `sim-${vcpus}`,
  vcpus,
  memoryMib: vcpus * 1_024,
  diskGib: vcpus * 5,
  ephemeralGib: 0,
  swapMib: 0,
  extraSpecs: {},
  rxtxFactor: 1,
  isPublic: true,
  description: null,
}));

/** Share of the operations that delete a server. */
const DELETE_SHARE = 0.25;
/** Tries of a delete whose answer did not come. */
const TRIES_MAX = 200;
const RETRY_MS = 500;

/** Users: they create servers and delete some of them, over any api, at random moments. */
export class Workload {
  readonly #world: World;
  readonly #cloud: SimCloud;
  readonly #user: SimProcess;
  readonly #random: () => number;
  /** Uuids that an api has accepted, and that were not asked to be deleted. */
  readonly #servers: string[] = [];
  readonly accepted = new Set<string>();
  readonly deleted = new Set<string>();
  #open = 0;
  #stopped = false;

  constructor(world: World, cloud: SimCloud) {
    this.#world = world;
    this.#cloud = cloud;
    this.#user = world.process("user");
    this.#random = world.random("workload");
  }

  /** No call is under way. */
  get isIdle(): boolean {
    return this.#open === 0;
  }

  /** So many operations, spread over the time until `untilMs`. */
  begin(operations: number, fromMs: number, untilMs: number): void {
    for (let index = 0; index < operations; index += 1) {
      const delayMs = fromMs + this.#random() * (untilMs - fromMs);
      const deletes = this.#random() < DELETE_SHARE;
      const choice = this.#random();
      this.#world.clock.setTimer(delayMs, () => {
        if (!this.#stopped) void (deletes ? this.#deleteOne(choice) : this.#create(choice));
      });
    }
  }

  /** Nothing new is begun. */
  stop(): void {
    this.#stopped = true;
  }

  /** Deletes every server that is left, again and again until each is gone. */
  deleteAll(): void {
    for (const uuid of this.#servers.splice(0)) void this.#delete(uuid);
  }

  async #create(choice: number): Promise<void> {
    const vcpus = SIZES[Math.floor(choice * SIZES.length)]!;
    const answer = await this.#call("POST", "/v2.1/servers", {
      server: {
        name: "sim",
        flavorRef: `${vcpus}`,
        imageRef: "70a599e0-31e7-49b7-b260-868f441e862b",
        networks: "none",
      },
    });
    if (answer === null) return;
    if (answer.status !== 202) {
      this.#world.history.record("user", "refused", { status: answer.status, body: answer.body });
      // Overload and lost databases are 503 and 504; anything else is a bug.
      if (answer.status < 503) this.#world.find(5, `a create was answered with ${answer.status}: ${answer.body}`);
      return;
    }
    const { uuid } = idOf(answer.body);
    this.#world.history.record("user", "created", { server: uuid });
    this.accepted.add(uuid);
    this.#servers.push(uuid);
  }

  async #deleteOne(choice: number): Promise<void> {
    const [uuid] = this.#servers.splice(Math.floor(choice * this.#servers.length), 1);
    if (uuid !== undefined) await this.#delete(uuid);
  }

  async #delete(uuid: string): Promise<void> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const answer = await this.#call("DELETE", `/v2.1/servers/${uuid}`);
      if (answer !== null && (answer.status === 204 || answer.status === 404)) {
        this.#world.history.record("user", "deleted", { server: uuid, status: answer.status });
        this.deleted.add(uuid);
        return;
      }
      await new Promise<void>((resolve) => this.#world.clock.setTimer(RETRY_MS, resolve));
    }
    this.#world.find(5, `server ${uuid} cannot be deleted`);
  }

  async #call(method: "POST" | "DELETE", url: string, payload?: object) {
    const apis = this.#cloud.supervisor.names("api");
    const api = apis[Math.floor(this.#random() * apis.length)]!;
    this.#open += 1;
    const answer = await this.#cloud.call(this.#user, api, { method, url, ...(payload ? { payload } : {}) });
    this.#open -= 1;
    return answer;
  }
}

function idOf(body: string): { readonly uuid: string } {
  const { server } = JSON.parse(body) as { readonly server: { readonly id: string } };
  return { uuid: server.id };
}
