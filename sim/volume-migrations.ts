import { OPERATIONS } from "../core/tasks/operation-kinds.ts";
import { OPERATORS_PREFIX } from "../services/api/operators/register-operators.ts";
import { freeServer } from "./free-server.ts";
import type { ChangingUser } from "./server-changes.ts";
import type { SimMigrations } from "./sim-migrations.ts";
import type { World } from "./world.ts";

type MigratingUser = Pick<ChangingUser, "call" | "look" | "servers" | "isOver">;

/** Migrations for each operation of users. */
const MIGRATIONS_SHARE = 1;
/** How often a user tries to migrate a volume, and the pause between two tries. */
const TRIES_MAX = 4;
const TRY_MS = 2_500;
/** Share of the migrations of volumes of servers in any status, also of those that do something else. */
const BLIND_SHARE = 0.2;
/** The statuses in which the host of a server replaces its volumes. */
const REPLACEABLE = [...OPERATIONS["swap-volume"].allowedFrom, ...OPERATIONS["swap-volume-unconfirmed"].allowedFrom];
/** Share of the calls that arrive twice, and of those that Cinder repeats when it has got no answer. */
const TWICE_SHARE = 0.15;
const AGAIN_SHARE = 0.3;
/** How often a user who migrates a volume looks whether the server is free, and the pause between two looks. */
const LOOKS_MAX = 12;
const FREE_MS = 400;
/** How often an operator looks for volumes in doubt when there are no more faults. */
const LOOK_MS = 5_000;

/** Users and operators who let Cinder migrate volumes that servers use, for which it asks an api to replace them. */
export class VolumeMigrations {
  readonly #world: World;
  readonly #user: MigratingUser;
  readonly #migrations: SimMigrations;
  readonly #random: () => number;
  /** How many migrations have come so far that Cinder has asked an api, and how many of these calls were accepted. */
  readonly counts = { begun: 0, accepted: 0, settled: 0 };

  constructor(world: World, user: MigratingUser, migrations: SimMigrations) {
    this.#world = world;
    this.#user = user;
    this.#migrations = migrations;
    this.#random = world.random("volume migrations");
  }

  /** Begins migrations at random moments until `untilMs`, as many as belong to this number of operations. */
  begin(operations: number, fromMs: number, untilMs: number): void {
    for (let index = 0; index < operations * MIGRATIONS_SHARE; index += 1) {
      const delayMs = fromMs + this.#random() * (untilMs - fromMs);
      this.#world.clock.setTimer(delayMs, () => void this.#migrateOne());
    }
    this.#world.clock.setTimer(untilMs, () => void this.#settleInDoubt());
  }

  async #migrateOne(): Promise<void> {
    const isBlind = this.#random() < BLIND_SHARE;
    const free = freeServer(this.#user, this.#random, REPLACEABLE);
    const all = this.#user.servers();
    const any = all[Math.floor(this.#random() * all.length)];
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      if ((await this.change(isBlind ? any : free, isBlind)) || this.#user.isOver()) return;
      await this.#pause(TRY_MS * (0.2 + this.#random()));
    }
  }

  /**
   * Migrates a volume of the server, if there is one that may be migrated. Resolves with whether an api has begun to replace it. Cinder makes the other volume for as long as the server
   * is busy, unless the user does not care (`isBlind`).
   */
  async change(server: string | undefined, isBlind = false): Promise<boolean> {
    const which = this.#random();
    const volumes = (server === undefined ? null : this.#user.look(server))?.spec.volumes ?? [];
    const volumeId = volumes[Math.floor(which * volumes.length)]?.volumeId;
    if (volumeId === undefined || volumeId === "" || this.#user.isOver()) return false;
    const begun = await this.#migrations.begin(volumeId);
    if (begun === null) return false;
    this.counts.begun += 1;
    for (let looks = 0; looks < LOOKS_MAX && !isBlind && this.#isBusy(server); looks += 1) await this.#pause(FREE_MS);
    for (const serverUuid of begun.servers) {
      if (await this.#replace(serverUuid, volumeId, begun.targetId)) continue;
      await this.#migrations.giveUp(volumeId, begun.targetId);
      return false;
    }
    // The volume has lost its server while the other one was made. Cinder copies it by itself.
    if (begun.servers.length === 0) await this.#migrations.giveUp(volumeId, begun.targetId);
    else {
      this.#migrations.accepted(begun.targetId);
      this.counts.accepted += 1;
    }
    return begun.servers.length > 0;
  }

  /** Resolves with whether an api has accepted the call. */
  async #replace(server: string, volumeId: string, otherId: string): Promise<boolean> {
    const [twice, again] = [this.#random(), this.#random()];
    const call = {
      method: "PUT" as const,
      url: `/v2.1/servers/${server}/os-volume_attachments/${volumeId}`,
      payload: { volumeAttachment: { volumeId: otherId } },
    };
    const ask = async () => {
      const answer = await this.#user.call(call);
      const status = answer?.status ?? 0;
      this.#world.history.record("cinder", "asks for a replacement", { server, volumeId, otherId, status });
      // The server may be gone or busy, or the volume detached, and the places that are asked may be silent. Anything else is a bug.
      if (status >= 300 && status < 503 && ![400, 404, 409].includes(status))
        this.#world.find(5, `the replacement of volume ${volumeId} was answered with ${status}: ${answer?.body}`);
      return status;
    };
    const first = ask();
    if (twice < TWICE_SHARE) void ask();
    const status = await first;
    if (status === 0 && again < AGAIN_SHARE) return (await ask()) === 202;
    return status === 202;
  }

  #isBusy(server: string | undefined): boolean {
    return server !== undefined && (this.#user.look(server)?.taskState ?? null) !== null;
  }

  #pause(forMs: number): Promise<void> {
    return new Promise((resolve) => this.#world.clock.setTimer(forMs, resolve));
  }

  /** An operator settles which of two volumes a guest has used, where nobody but its host knows that, as long as the world lasts. */
  async #settleInDoubt(): Promise<void> {
    for (const server of this.#user.servers()) {
      const { taskState = "", spec } = this.#user.look(server) ?? {};
      const volume = spec?.volumes.find(({ replacedBy }) => replacedBy !== "");
      if (taskState !== null || volume === undefined) continue;
      const { volumeId } = volume;
      const url = `${OPERATORS_PREFIX}/servers/${server}/volumes/${volumeId}/settle`;
      const answer = await this.#user.call({ method: "POST", url, payload: {} });
      const status = answer?.status ?? 0;
      if (status === 202) this.counts.settled += 1;
      this.#world.history.record("operator", "settles a volume", { server, volumeId, status });
      if (status >= 300 && status < 503 && ![404, 409].includes(status))
        this.#world.find(5, `a volume in doubt was answered with ${status}: ${answer?.body}`);
    }
    this.#world.clock.setTimer(LOOK_MS, () => void this.#settleInDoubt());
  }
}
