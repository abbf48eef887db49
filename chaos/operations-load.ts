import { setTimeout as delay } from "node:timers/promises";
import type { ServerDetail } from "../services/api/compute/servers/server-schemas.ts";
import type { ChaosApi } from "./chaos-api.ts";
import type { ChaosServer } from "./chaos-server.ts";
import { type ChaosFlavors, SMALL_VCPUS } from "./create-flavors.ts";

/** Returns the body of a server action, as Nova's clients send it. `flavor` is one that the server may be resized to. */
type ActionBody = (flavor: string) => object;

const ACTIONS = {
  resize: (flavor) => ({ resize: { flavorRef: flavor } }),
  migrate: () => ({ migrate: { host: null } }),
  "live-migrate": () => ({ "os-migrateLive": { host: null, block_migration: "auto" } }),
  confirm: () => ({ confirmResize: null }),
  revert: () => ({ revertResize: null }),
  stop: () => ({ "os-stop": null }),
  start: () => ({ "os-start": null }),
  reboot: () => ({ reboot: { type: "SOFT" } }),
  pause: () => ({ pause: null }),
  unpause: () => ({ unpause: null }),
  suspend: () => ({ suspend: null }),
  resume: () => ({ resume: null }),
  rescue: () => ({ rescue: null }),
  unrescue: () => ({ unrescue: null }),
  shelve: () => ({ shelve: null }),
  unshelve: () => ({ unshelve: null }),
} as const satisfies Readonly<Record<string, ActionBody>>;
type ActionName = keyof typeof ACTIONS;

/**
 * Actions that a client may ask for, by the status of a server without a task. Moves are listed more than once so that they are asked for
 * more often.
 */
const ALLOWED: Readonly<Record<string, readonly ActionName[]>> = {
  ACTIVE: [
    "resize",
    "migrate",
    "live-migrate",
    "live-migrate",
    "stop",
    "reboot",
    "pause",
    "suspend",
    "rescue",
    "shelve",
  ],
  SHUTOFF: ["start", "resize", "migrate"],
  PAUSED: ["unpause"],
  SUSPENDED: ["resume"],
  RESCUE: ["unrescue"],
  VERIFY_RESIZE: ["confirm", "revert"],
  SHELVED: ["unshelve"],
  SHELVED_OFFLOADED: ["unshelve"],
};
const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 600;

/** Clients that resize, move, stop, pause, rescue and shelve servers until the load ends, with one operation at a time on each server. */
export class OperationsLoad {
  readonly #api: ChaosApi;
  readonly #random: () => number;
  readonly #flavors: ChaosFlavors;
  readonly #stopping = new AbortController();
  readonly #following = new Set<Promise<void>>();

  constructor(options: {
    readonly api: ChaosApi;
    readonly random: () => number;
    /** Servers are resized between these two flavors. */
    readonly flavors: ChaosFlavors;
  }) {
    this.#api = options.api;
    this.#random = options.random;
    this.#flavors = options.flavors;
  }

  /** Begins to operate on a server that is ACTIVE. From now on the end of the run waits until the server has no task. */
  follow(server: ChaosServer): void {
    server.operations = "operating";
    const following = this.#follow(server).finally(() => {
      server.operations = "awaited";
      this.#following.delete(following);
    });
    this.#following.add(following);
  }

  /** Starts no more operations. Resolves when all that were asked for are answered. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#following);
  }

  async #follow(server: ChaosServer): Promise<void> {
    while (!this.#stopping.signal.aborted && server.deleting === "no" && !server.lost) {
      await this.#operate(server);
      await this.#pause(PAUSE_MS_MIN + this.#random() * (PAUSE_MS_MAX - PAUSE_MS_MIN));
    }
  }

  /** Asks for one operation, if the server is in a state that allows one. */
  async #operate(server: ChaosServer): Promise<void> {
    const path = `/servers/${server.uuid}`;
    const answer = await this.#api.send({ method: "GET", path });
    if (answer.kind !== "ok") return;
    const shown = (answer.body as { readonly server: ServerDetail }).server;
    const allowed = ALLOWED[shown.status] ?? [];
    const name = allowed[Math.floor(this.#random() * allowed.length)];
    if (name === undefined || shown["OS-EXT-STS:task_state"] !== null) return;
    const { small, large } = this.#flavors;
    // From microversion 2.47 on, a server shows the size of its flavor and not its id.
    const body = ACTIONS[name](shown.flavor.vcpus === SMALL_VCPUS ? large : small);
    const call = { who: server.client, op: "action", method: "POST", path: `${path}/action`, body } as const;
    await this.#api.ask({ ...call, action: name, server: server.uuid ?? "" });
  }

  async #pause(ms: number): Promise<void> {
    // The end of the load aborts the pause. This is not an error.
    await delay(ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
  }
}
