import { freeServer } from "./free-server.ts";
import type { ChangingUser } from "./server-changes.ts";
import { SIM_NETWORK } from "./sim-neutron.ts";
import type { World } from "./world.ts";

/** Interface changes for each operation of users. */
const CHANGES_SHARE = 0.5;
/** Share of the attachments that name a port of the users. */
const USERS_PORT_SHARE = 0.4;
/** Most ports of a server. */
const PORTS_MAX = 3;
/** Answers to what may not be done now: the port or the server is busy, or gone. */
const REFUSALS = [400, 404, 409];

/** Users who attach ports to servers, and detach them again. */
export class InterfaceChanges {
  readonly #world: World;
  readonly #user: Pick<ChangingUser, "call" | "look" | "servers" | "isOver">;
  readonly #usersPorts: readonly string[];
  readonly #random: () => number;

  constructor(
    world: World,
    user: Pick<ChangingUser, "call" | "look" | "servers" | "isOver">,
    usersPorts: readonly string[],
  ) {
    this.#world = world;
    this.#user = user;
    this.#usersPorts = usersPorts;
    this.#random = world.random("interface changes");
  }

  /** Begins changes at random moments until `untilMs`, as many as belong to this number of operations. */
  begin(operations: number, fromMs: number, untilMs: number): void {
    for (let index = 0; index < operations * CHANGES_SHARE; index += 1) {
      const delayMs = fromMs + this.#random() * (untilMs - fromMs);
      this.#world.clock.setTimer(delayMs, () => void this.#change());
    }
  }

  async #change(): Promise<void> {
    const server = freeServer(this.#user, this.#random);
    const [way, which] = [this.#random(), this.#random()];
    if (server === undefined || this.#user.isOver()) return;
    const ports = this.#user.look(server)?.spec.ports ?? [];
    const attaches = ports.length === 0 || (ports.length < PORTS_MAX && way < 0.5);
    const url = `/v2.1/servers/${server}/os-interface`;
    const users = this.#usersPorts[Math.floor((which / USERS_PORT_SHARE) * this.#usersPorts.length)];
    const wanted = users === undefined ? { net_id: SIM_NETWORK } : { port_id: users };
    const detached = ports[Math.floor(which * ports.length)]?.portId ?? "";
    const answer = await this.#user.call(
      attaches
        ? { method: "POST", url, payload: { interfaceAttachment: wanted } }
        : { method: "DELETE", url: `${url}/${detached}` },
    );
    if (answer === null) return;
    const { status, body } = answer;
    this.#world.history.record("user", attaches ? "attach port" : "detach port", { server, detached, status });
    // Overload, lost databases and a silent Neutron are 503 and 504; anything else is a bug.
    if (status >= 300 && status < 503 && !REFUSALS.includes(status))
      this.#world.find(5, `a change of interfaces was answered with ${status}: ${body}`);
  }
}
