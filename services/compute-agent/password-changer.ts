import type { ConductorStream } from "../../core/agent/link.ts";
import { runsNow } from "../../core/agent/runs-now.ts";
import type { ChangePassword } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { callDriver } from "./call-driver.ts";
import type { Driver } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestChains } from "./guest-chains.ts";
import type { GuestName } from "./journal.ts";
import { messageOf } from "./message-of.ts";

/** A driver that needs longer than this has failed. It is shorter than the conductor's wait for the answer. */
const CHANGE_MS = 15_000;
/** A message that waited longer for other orders of the guest is refused. Its conductor would no longer hear that it was carried out. */
const WAIT_MS_MAX = 2_500;

interface ChangerDeps {
  readonly chains: GuestChains;
  readonly driver: Pick<Driver, "powersOf"> & { readonly changePassword?: Driver["changePassword"] };
  readonly clock: Clock;
  readonly events: Pick<AgentEvents, "driverStuck" | "passwordFailed">;
  readonly hosts: ReadonlySet<string>;
}

/** A reason that a user may read. */
class RefusedError extends Error {}

/**
 * Changes the passwords of guests that run, in the guests' chains of orders. The password is neither stored nor logged, so a message that is lost is
 * not repeated: its user asks again. A message that arrives twice changes nothing more.
 */
export class PasswordChanger {
  readonly #deps: ChangerDeps;

  constructor(deps: ChangerDeps) {
    this.#deps = deps;
  }

  /** Always answers, and never rejects. The driver's words are logged, and are not in the answer, as in Nova. */
  async change({ host, serverUuid, attemptId, query, password }: ChangePassword, from: ConductorStream): Promise<void> {
    const { driver, chains, clock, events, hosts } = this.#deps;
    const answer = ({ absent = false, unsupported = false, failed = "" }) =>
      from.send({ body: { $case: "password", value: { host, query, absent, unsupported, failed } } });
    const name = { host, serverUuid, attemptId };
    const heardAtMs = clock.monotonic();
    const change = driver.changePassword?.bind(driver);
    if (!hosts.has(host)) return answer({ absent: true });
    if (change === undefined) return answer({ unsupported: true });
    try {
      await chains.enter(name, async (signal) => {
        if (clock.monotonic() - heardAtMs > WAIT_MS_MAX)
          throw new RefusedError("its host was busy with another order for it: change the password again");
        await this.#requireRunning(name);
        const what = "changing a guest's password";
        const call = (raised: AbortSignal) => change(name, password, raised);
        await callDriver(call, {
          ...{ signal, timeoutMs: CHANGE_MS, what, clock },
          onStuck: () => events.driverStuck(name, what),
        });
      });
      answer({});
    } catch (error) {
      events.passwordFailed(name, messageOf(error));
      answer({ failed: error instanceof RefusedError ? error.message : "error setting admin password" });
    }
  }

  async #requireRunning(name: GuestName): Promise<void> {
    const [power] = await this.#deps.driver.powersOf([name]);
    if (power === undefined || !runsNow(power)) throw new RefusedError(`instance ${name.serverUuid} is not running`);
  }
}
