import type { Server } from "../core/tasks/server.ts";
import type { ApiCall, SimAnswer } from "./call-in-process.ts";
import { SIM_IMAGE } from "./sim-flavors.ts";
import type { World } from "./world.ts";

/** The functions of a user that changes need. */
export interface ChangingUser {
  /** Resolves with null when no answer came. */
  call(call: ApiCall): Promise<SimAnswer | null>;
  /** The present state of a server, or null when it is in no cell. */
  look(uuid: string): Server | null;
  /** Servers that exist, as far as users know. */
  servers(): readonly string[];
  /** Deletes a server, whatever is under way on it. */
  deletes(uuid: string): Promise<void>;
  /** Names of hosts that have no power. */
  darkHosts(): readonly string[];
  /** Keeps a host without power as long as it is fenced. */
  fence(host: string, isFenced: boolean): void;
  /** Whether no new changes may begin. */
  isOver(): boolean;
  /** Whether deleted servers are kept, and can be restored. */
  readonly keepsDeleted: boolean;
  /** Whether a server that is shelved loses its host in the same operation. */
  readonly offloadsAtOnce: boolean;
  /** The only actions that users take; all if undefined. */
  readonly changes: readonly string[] | undefined;
  /** How long after the beginning of a change users regret it at most, in milliseconds. */
  readonly regretMsMax?: number | undefined;
}

type Action = Readonly<Record<string, unknown>>;
const SIZES = ["1", "2", "4"];

/** The name of a `DELETE` where deleted servers are kept. */
const SOFT_DELETE = "delete softly";

/** Actions that a status allows. An action that is listed more than once is chosen more often. */
const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  ACTIVE: ["resize", "resize", "resize", "migrate", "migrate", "live", "live", "live", "rebuild", "rebuild"].concat([
    "os-stop",
    "pause",
    "suspend",
    "rescue",
    "rescue",
    "soft",
    "hard",
    ...["shelve", "shelve", "shelve"],
  ]),
  VERIFY_RESIZE: ["confirmResize", "revertResize"],
  SHUTOFF: ["os-start", "os-start", "rescue", "resize", "migrate", "rebuild", "shelve", "shelve"],
  PAUSED: ["unpause", "unpause", "shelve", "hard"],
  SUSPENDED: ["resume", "resume", "shelve", "hard"],
  RESCUE: ["unrescue"],
  SHELVED: ["unshelve", "shelveOffload"],
  SHELVED_OFFLOADED: ["unshelve"],
  ERROR: ["rebuild", "hard", "rescue"],
};
/** Further actions where deleted servers are kept. */
const SOFT_ACTIONS: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(Object.keys(ACTIONS).map((status) => [status, [SOFT_DELETE, SOFT_DELETE]])),
  SOFT_DELETED: ["restore", "restore", "restore", SOFT_DELETE],
};
const ALL_ACTIONS = [...new Set(Object.values(ACTIONS).flat())];

/** Maximum number of servers that are looked at to find one that allows a change. */
const LOOKS_MAX = 3;
/** How many times an operator tries to evacuate a host without power, and the pause between two tries. */
const EVACUATIONS_MAX = 8;
const EVACUATE_MS = 2_000;
/** An operator who evacuates without a fence gives up sooner. */
const UNFENCED_MAX = 4;
/** Number of tries for a call that must succeed, and the pause between two. */
const WORD_TRIES_MAX = 200;
const WORD_RETRY_MS = 500;
/** Share of the actions that are requested although the server's status does not allow them. */
const BLIND_SHARE = 0.1;
/** Share of the changes of paused servers that are live migrations, instead of the drawn change. */
const PAUSED_LIVE_SHARE = 0.4;
/** Share of the changes that are cancelled, or overtaken by a delete, soon after they began. */
const REGRET_SHARE = 0.15;
/**
 * Users regret live migrations more often than other changes. Only these can be cancelled; those that are regretted and not cancelled are
 * hurried.
 */
const LIVE_REGRET_SHARE = 0.7;
const CALLED_OFF_SHARE = 0.7;
const REGRET_MS_MAX = 2_500;
/** How many times a user who resizes a server looks whether the resize has finished. */
const SETTLE_LOOKS_MAX = 20;
const SETTLE_LOOK_MS = 600;

/** Resizes, migrations, evacuations, shelving, rebuilds and power actions: what users do to servers after their boot. */
export class ServerChanges {
  readonly #world: World;
  readonly #user: ChangingUser;
  readonly #random: () => number;
  /** Apart from the others, so that a seed's other changes are what they were before paused servers could move. */
  readonly #randomPaused: () => number;
  /** Number of changes begun, by action. */
  readonly begun = new Map<string, number>();
  /** Hosts that are fenced. */
  readonly #leaving = new Set<string>();
  /** Hosts that an operator has asked to force down, whether or not the answer came. */
  readonly toldDown = new Set<string>();

  constructor(world: World, user: ChangingUser) {
    this.#world = world;
    this.#user = user;
    this.#random = world.random("changes");
    this.#randomPaused = world.random("paused moves");
  }

  /**
   * An operator evacuates a host that has lost its power: fences the host, forces it down, evacuates its servers, withdraws the forced-down
   * flag, and lets the host have its power again.
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

  /** An operator takes a host that cannot be seen for dead, and evacuates its servers without fencing it. */
  async leaveUnfenced(host: string): Promise<void> {
    for (let tries = 0; tries < UNFENCED_MAX && !this.#user.isOver(); tries += 1) {
      await this.#pause(EVACUATE_MS * (1 + this.#random()));
      await this.#evacuate(host, () => this.#user.isOver());
    }
  }

  /** Requests one action that the status of some server allows. */
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

  /** Returns undefined when no action is possible now. */
  #choose(server: Server): { readonly action: string; readonly body: Action } | undefined {
    const isBlind = this.#random() < BLIND_SHARE;
    if (!isBlind && server.taskState !== null) return undefined;
    const soft = this.#user.keepsDeleted ? (SOFT_ACTIONS[server.status] ?? []) : [];
    const possible = isBlind ? ALL_ACTIONS : [...(ACTIONS[server.status] ?? []), ...soft];
    const isMade = (one: string) => this.#user.changes?.includes(one) !== false;
    const drawn = this.#pick(possible.filter(isMade));
    if (drawn === undefined) return undefined;
    const size = this.#pick(SIZES.filter((one) => one !== server.spec.flavor?.id))!;
    const moves = server.status === "PAUSED" && !isBlind && isMade("live");
    const action = moves && this.#randomPaused() < PAUSED_LIVE_SHARE ? "live" : drawn;
    return { action, body: this.#bodyOf(action, size) };
  }

  /** Resolves with whether the call was received. */
  async #forceDown(host: string, forcedDown: boolean): Promise<boolean> {
    const listed = await this.#user.call({ method: "GET", url: `/v2.1/os-services?host=${host}&binary=nova-compute` });
    if (listed === null || listed.status !== 200) return false;
    const [service] = (JSON.parse(listed.body) as { services: { id: string }[] }).services;
    // A host that has never reported runs nothing. But the list also leaves out the hosts of a cell that does not answer.
    if (service === undefined) return !forcedDown && !this.toldDown.has(host);
    if (forcedDown) this.toldDown.add(host);
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

  /** Resolves with true when the action has begun. */
  async #act(uuid: string, name: string, payload: Action): Promise<boolean> {
    const isOffload = name === "shelveOffload" || (name === "shelve" && this.#user.offloadsAtOnce);
    if (isOffload) this.#world.onUnwanted(uuid, "gone");
    else if (name === "os-stop" || name === "shelve") this.#world.onUnwanted(uuid, "stopped");
    const url = `/v2.1/servers/${uuid}`;
    // Nobody may restore it in time.
    if (name === SOFT_DELETE) this.#world.onUnwanted(uuid, "gone");
    const answer = await this.#user.call(
      name === SOFT_DELETE ? { method: "DELETE", url } : { method: "POST", url: `${url}/action`, payload },
    );
    const status = answer?.status ?? 0;
    this.#world.history.record("user", name, { server: uuid, status });
    const isBegun = status >= 200 && status < 300;
    if (isBegun) this.begun.set(name, (this.begun.get(name) ?? 0) + 1);
    // The server may be gone, busy, or in another state by now, the host may not be known to be down yet, or there may be too many
    // requests.
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

  /** Waits for a resize or a cold migration to finish, and confirms or reverts it. */
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

  /** Cancels or hurries a live migration. Any other action is overtaken by a delete. */
  async #regret(uuid: string, name: string): Promise<void> {
    await this.#pause(this.#random() * (this.#user.regretMsMax ?? REGRET_MS_MAX));
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
