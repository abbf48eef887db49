import { OPERATIONS } from "../core/tasks/operation-kinds.ts";
import type { Server } from "../core/tasks/server.ts";
import type { ChangingUser } from "./server-changes.ts";
import type { CopyOfServer } from "./sim-cell.ts";
import { SIM_IMAGE } from "./sim-flavors.ts";
import type { World } from "./world.ts";

const LOOK_MS = 1_500;
/** Other faults may hit each rebuild, but some time after the last fault every server must be whole. */
const LOOKS_MAX = 400;

interface Operator extends Pick<ChangingUser, "call" | "look" | "deletes"> {
  /** The servers of which a host has lost a guest, until they are whole again. */
  readonly lost: Set<string>;
  copiesOf(serverUuid: string): readonly CopyOfServer[];
}

/** Operators who rebuild servers whose hosts have lost their guests, until each has a guest again. */
export class LostGuests {
  readonly #world: World;
  readonly #operator: Operator;
  readonly #random: () => number;
  /** How many rebuilds were begun. */
  rebuilds = 0;

  constructor(world: World, operator: Operator) {
    this.#world = world;
    this.#operator = operator;
    this.#random = world.random("lost guests");
  }

  /** Rebuilds the server until it has its guest at home, unless it ends, or is deleted because its host starts no new guest. */
  async heal(uuid: string): Promise<void> {
    for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
      await this.#pause();
      const server = this.#operator.look(uuid);
      if (server === null || server.status === "DELETED" || this.#isWhole(server)) {
        this.#operator.lost.delete(uuid);
        return;
      }
      if (server.taskState !== null || !OPERATIONS.rebuild.allowedFrom.includes(server.status)) continue;
      // On some hosts no new guest starts at once. Their servers are given up.
      if (server.fault?.message.includes("firmware is broken")) await this.#operator.deletes(uuid);
      else await this.#rebuild(uuid);
    }
    this.#world.find(5, `server ${uuid} has lost its guest, and no rebuild has healed it`);
  }

  /** A server that could not be built has no home, and lacks no guest. */
  #isWhole({ uuid, status, taskState, host, attemptId }: Server): boolean {
    if (taskState !== null) return false;
    if (host === null) return status === "ERROR";
    const home = this.#operator.copiesOf(uuid).find((copy) => copy.attemptId === attemptId);
    return home !== undefined && (status === "ACTIVE" ? home.running : status === "SHUTOFF");
  }

  async #rebuild(uuid: string): Promise<void> {
    const payload = { rebuild: { imageRef: SIM_IMAGE } };
    const answer = await this.#operator.call({ method: "POST", url: `/v2.1/servers/${uuid}/action`, payload });
    const status = answer?.status ?? 0;
    this.#world.history.record("operator", "rebuilds a lost guest", { server: uuid, status });
    if (status === 202) this.rebuilds += 1;
    // The server may be gone or busy by now, or the api or its database may not answer.
    else if (![0, 404, 409].includes(status) && status < 503)
      this.#world.find(5, `the rebuild of ${uuid} was answered with ${status}: ${answer?.body}`);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#world.clock.setTimer(LOOK_MS * (0.5 + this.#random()), resolve));
  }
}
