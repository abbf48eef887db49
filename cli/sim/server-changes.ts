import type { Server } from "../../core/cell/server.ts";
import type { ApiCall, SimAnswer } from "./sim-cloud.ts";
import { SIM_IMAGE } from "./sim-flavors.ts";
import type { World } from "./world.ts";

/** What changes need of the users that they belong to. */
export interface ChangingUser {
  /** Null: no answer came. */
  call(call: ApiCall): Promise<SimAnswer | null>;
  /** What a server is at this moment; null: it is in no cell. */
  look(uuid: string): Server | null;
  /** Servers that exist, as far as users know. */
  servers(): readonly string[];
  /** Deletes a server, whatever is done to it. */
  deletes(uuid: string): Promise<void>;
  /** Hosts that have no power. */
  darkHosts(): readonly string[];
  /** Keeps a host without power as long as it is fenced. */
  fence(host: string, isFenced: boolean): void;
  /** Nothing new is begun. */
  isOver(): boolean;
}

type Action = Readonly<Record<string, unknown>>;
const SIZES = ["1", "2", "4"];

/** What may be done to a server of a status; of each the more, the more often it stands there. */
const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  ACTIVE: ["resize", "resize", "resize", "migrate", "migrate", "live", "live", "live", "rebuild", "rebuild"].concat([
    "os-stop",
    "pause",
    "soft",
    "hard",
    "shelve",
    "shelve",
    "shelveOffload",
  ]),
  VERIFY_RESIZE: ["confirmResize", "revertResize"],
  SHUTOFF: ["os-start", "os-start", "resize", "migrate", "rebuild", "shelve", "shelveOffload"],
  PAUSED: ["unpause", "unpause", "shelve", "hard"],
  SHELVED: ["unshelve", "shelveOffload"],
  SHELVED_OFFLOADED: ["unshelve"],
  ERROR: ["rebuild", "hard"],
};
const ALL_ACTIONS = [...new Set(Object.values(ACTIONS).flat())];

/** Servers that are looked at, one after the other, for one with which there is something to do. */
const LOOKS_MAX = 3;
/** An operator tries so often, so far apart, to evacuate a host without power. */
const EVACUATIONS_MAX = 8;
const EVACUATE_MS = 2_000;
/** Who evacuates without a fence gives up sooner. */
const UNFENCED_MAX = 4;
/** Tries of a word that has to be said, and the pause between two. */
const WORD_TRIES_MAX = 200;
const WORD_RETRY_MS = 500;
/** Now and then somebody asks for what the server's status does not allow. */
const BLIND_SHARE = 0.1;
/** A change that is called off, or overtaken by a delete, soon after it began. */
const REGRET_SHARE = 0.15;
/** Live migrations are the only changes that can be called off; the others of which somebody thinks again are hurried. */
const LIVE_REGRET_SHARE = 0.7;
const CALLED_OFF_SHARE = 0.7;
const REGRET_MS_MAX = 2_500;
/** Who resizes looks so often whether it is there. */
const SETTLE_LOOKS_MAX = 20;
const SETTLE_LOOK_MS = 600;

/** Resizes, migrations, evacuations, shelving, rebuilds and power: what is done to servers after their boot. */
export class ServerChanges {
  readonly #world: World;
  readonly #user: ChangingUser;
  readonly #random: () => number;
  /** How often each was begun. */
  readonly begun = new Map<string, number>();
  /** Hosts that are fenced. */
  readonly #leaving = new Set<string>();
  /** Hosts that an operator has asked to force down, whether or not the answer came. */
  readonly #toldDown = new Set<string>();

  constructor(world: World, user: ChangingUser) {
    this.#world = world;
    this.#user = user;
    this.#random = world.random("changes");
  }

  /**
   * An operator has servers of a host that has lost its power started elsewhere: he sees to it that the host stays without power, says so,
   * evacuates it, takes his word back, and lets the host have its power.
   */
  async leave(host: string): Promise<void> {
    await this.#pause(EVACUATE_MS * (1 + this.#random()));
    if (this.#user.isOver() || this.#leaving.has(host) || !this.#user.darkHosts().includes(host)) return;
    this.#leaving.add(host);
    this.#user.fence(host, true);
    for (let tries = 0; tries < EVACUATIONS_MAX && !this.#user.isOver(); tries += 1) {
      if (await this.#forceDown(host, true)) await this.#evacuate(host, () => this.#user.isOver());
      await this.#pause(EVACUATE_MS * (1 + this.#random()));
    }
    for (let tries = 0; !(await this.#forceDown(host, false)); tries += 1) {
      if (tries === WORD_TRIES_MAX) {
        this.#world.find(5, `the word that ${host} is forced down cannot be taken back`);
        return;
      }
      await this.#pause(WORD_RETRY_MS);
    }
    this.#user.fence(host, false);
    this.#leaving.delete(host);
  }

  /** Somebody takes a host that he cannot see for a dead one, and has its servers started elsewhere without fencing it. */
  async leaveUnfenced(host: string): Promise<void> {
    for (let tries = 0; tries < UNFENCED_MAX && !this.#user.isOver(); tries += 1) {
      await this.#pause(EVACUATE_MS * (1 + this.#random()));
      await this.#evacuate(host, () => this.#user.isOver());
    }
  }

  /** Does something to a server that its status allows. */
  async changeOne(choice: number): Promise<void> {
    for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
      const servers = this.#user.servers();
      const uuid = servers[(Math.floor(choice * servers.length) + looks) % servers.length];
      if (uuid === undefined || this.#user.isOver()) return;
      const server = this.#user.look(uuid);
      const name = server === null ? undefined : this.#choose(server);
      if (name === undefined) continue;
      const isBegun = await this.#act(uuid, name.action, name.body);
      if (!isBegun) return;
      if (this.#random() < (name.action === "live" ? LIVE_REGRET_SHARE : REGRET_SHARE))
        await this.#regret(uuid, name.action);
      else if (name.action === "resize" || name.action === "migrate") await this.#settle(uuid);
      return;
    }
  }

  /** Undefined: there is nothing to do with it now. */
  #choose(server: Server): { readonly action: string; readonly body: Action } | undefined {
    const isBlind = this.#random() < BLIND_SHARE;
    if (!isBlind && server.taskState !== null) return undefined;
    const action = this.#pick(isBlind ? ALL_ACTIONS : (ACTIONS[server.status] ?? []));
    if (action === undefined) return undefined;
    const sizes = SIZES.filter((size) => size !== server.spec.flavor?.id);
    return { action, body: this.#bodyOf(action, this.#pick(sizes)!) };
  }

  /** Whether it was heard. */
  async #forceDown(host: string, forcedDown: boolean): Promise<boolean> {
    const listed = await this.#user.call({ method: "GET", url: `/v2.1/os-services?host=${host}&binary=nova-compute` });
    if (listed === null || listed.status !== 200) return false;
    const [service] = (JSON.parse(listed.body) as { services: { id: string }[] }).services;
    // A host that has never reported runs nothing; but a list also leaves out the hosts of a cell that does not answer.
    if (service === undefined) return !forcedDown && !this.#toldDown.has(host);
    if (forcedDown) this.#toldDown.add(host);
    const payload = { forced_down: forcedDown };
    const answer = await this.#user.call({ method: "PUT", url: `/v2.1/os-services/${service.id}`, payload });
    this.#world.history.record("operator", "forces down", { host, forcedDown, status: answer?.status ?? 0 });
    return answer?.status === 200;
  }

  async #evacuate(host: string, isOver: () => boolean): Promise<void> {
    const url = `/v2.1/servers/detail?all_tenants=1&host=${host}`;
    const listed = await this.#user.call({ method: "GET", url });
    if (listed === null || listed.status !== 200) return;
    const { servers } = JSON.parse(listed.body) as { servers: { id: string }[] };
    for (const { id } of servers) {
      if (isOver()) return;
      await this.#act(id, "evacuate", { evacuate: {} });
    }
  }

  /** True: it has begun. */
  async #act(uuid: string, name: string, payload: Action): Promise<boolean> {
    if (name === "shelveOffload") this.#world.onUnwanted(uuid, "gone");
    if (name === "os-stop" || name === "shelve") this.#world.onUnwanted(uuid, "stopped");
    const answer = await this.#user.call({ method: "POST", url: `/v2.1/servers/${uuid}/action`, payload });
    const status = answer?.status ?? 0;
    this.#world.history.record("user", name, { server: uuid, status });
    const isBegun = status >= 200 && status < 300;
    if (isBegun) this.begun.set(name, (this.begun.get(name) ?? 0) + 1);
    // It is gone, or busy, or in another state by now; hosts that are not yet known to be down; or too much at once.
    const isRefused = status === 0 || status === 404 || status === 409 || status >= 503;
    const isBad = status === 400 && (name === "evacuate" || name === "confirmResize" || name === "revertResize");
    if (!isBegun && !isRefused && !isBad)
      this.#world.find(5, `${name} of ${uuid} was answered with ${status}: ${answer?.body}`);
    return isBegun;
  }

  #bodyOf(name: string, flavorRef: string): Action {
    switch (name) {
      case "resize":
        return { resize: { flavorRef } };
      case "live":
        return { "os-migrateLive": { host: null, block_migration: "auto" } };
      case "rebuild":
        return { rebuild: { imageRef: SIM_IMAGE } };
      case "soft":
      case "hard":
        return { reboot: { type: name.toUpperCase() } };
      default:
        return { [name]: null };
    }
  }

  /** Waits for a resize or a cold migration to be there, and confirms or reverts it. */
  async #settle(uuid: string): Promise<void> {
    for (let looks = 0; looks < SETTLE_LOOKS_MAX; looks += 1) {
      await this.#pause(SETTLE_LOOK_MS * (0.5 + this.#random()));
      if (this.#user.isOver()) return;
      const server = this.#user.look(uuid);
      if (server === null || server.status !== "VERIFY_RESIZE" || server.taskState !== null) continue;
      const action = this.#random() < 0.5 ? "confirmResize" : "revertResize";
      await this.#act(uuid, action, { [action]: null });
      return;
    }
  }

  /** A live migration is called off or hurried; everything else is overtaken by a delete. */
  async #regret(uuid: string, name: string): Promise<void> {
    await this.#pause(this.#random() * REGRET_MS_MAX);
    if (this.#user.isOver()) return;
    if (name !== "live") {
      await this.#user.deletes(uuid);
      return;
    }
    const url = `/v2.1/servers/${uuid}/migrations`;
    const listed = await this.#user.call({ method: "GET", url });
    if (listed === null || listed.status !== 200) return;
    const { migrations } = JSON.parse(listed.body) as { migrations: { id: number }[] };
    const [migration] = migrations;
    if (migration === undefined) return;
    const one = `${url}/${migration.id}`;
    const answer = await this.#user.call(
      this.#random() < CALLED_OFF_SHARE
        ? { method: "DELETE", url: one }
        : { method: "POST", url: `${one}/action`, payload: { force_complete: null } },
    );
    const status = answer?.status ?? 0;
    this.#world.history.record("user", "hurries or calls off", { server: uuid, status });
    if (status >= 500 && status < 503) this.#world.find(5, `a migration's end was answered with ${status}`);
  }

  #pause(forMs: number): Promise<void> {
    return new Promise((resolve) => this.#world.clock.setTimer(forMs, resolve));
  }

  #pick<Value>(from: readonly Value[]): Value | undefined {
    return from[Math.floor(this.#random() * from.length)];
  }
}
