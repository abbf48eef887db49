import type { ConsoleListener } from "../../adapters/consoles/console-listener.ts";
import type { ConductorStream } from "../../core/agent/link.ts";
import { runsNow } from "../../core/agent/runs-now.ts";
import type { ConsoleOpened, OpenConsole } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Driver } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestName } from "./journal.ts";
import { messageOf } from "./message-of.ts";

/** An answer of a driver is given up after this time. */
const LOOK_MS = 3_000;
const LIFETIME_MS_MAX = 3_600_000;
/** TLS has room for 128 bytes of an identity. A short key could be guessed. */
const SESSION = /^[\x21-\x7e]{1,128}$/;
const KEY_BYTES_MIN = 32;

type Deps = {
  readonly driver: Pick<Driver, "capabilities" | "powersOf" | "openConsole" | "hasDisplay" | "openDisplay">;
  /** Null when clients cannot reach this agent. */
  readonly listener: Pick<ConsoleListener, "address" | "expect"> | null;
  readonly hosts: ReadonlySet<string>;
  readonly clock: Clock;
  readonly events: Pick<AgentEvents, "consoleFailed">;
};

/** Lets clients reach the consoles of guests when conductors ask for it. It changes nothing, and so needs no turn in the guest's chain of orders. */
export class ConsoleOpener {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Always answers, and never rejects. */
  async open(order: OpenConsole, from: ConductorStream): Promise<void> {
    const { host, query } = order;
    const value = { host, query, ...NOTHING, ...(await this.#opened(order)) };
    from.send({ body: { $case: "consoleOpened", value } });
  }

  async #opened(order: OpenConsole): Promise<Partial<ConsoleOpened>> {
    const { driver, listener, hosts, clock, events } = this.#deps;
    const { host, serverUuid, attemptId, session, key, graphical } = order;
    if (!hosts.has(host)) return { absent: true };
    if (listener === null || !driver.capabilities.has(graphical ? "display" : "serial-console"))
      return { unavailable: true };
    if (!SESSION.test(session) || key.length < KEY_BYTES_MIN)
      return { failed: "the session has no proper name or key" };
    const guest: GuestName = { host, serverUuid, attemptId };
    try {
      const [power] = await withDeadline(driver.powersOf([guest]), LOOK_MS, "looking at the guest", clock);
      if (power === undefined || !(runsNow(power) || power === "paused")) return { absent: true };
      if (graphical && !driver.hasDisplay(guest)) return { unavailable: true };
      listener.expect({
        ...{ session, key, target: `${host} ${attemptId}${graphical ? " display" : ""}` },
        lifetimeMs: Math.min(order.lifetimeMs, LIFETIME_MS_MAX),
        connect: () => (graphical ? driver.openDisplay(guest) : driver.openConsole(guest)),
      });
      return { address: listener.address, graphical };
    } catch (error) {
      const failed = messageOf(error);
      events.consoleFailed(guest, failed);
      return { failed };
    }
  }
}

const NOTHING = { address: "", absent: false, unavailable: false, failed: "", graphical: false };
