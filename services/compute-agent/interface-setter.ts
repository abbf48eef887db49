import type { ConductorStream } from "../../core/agent/link.ts";
import type { CompleteInterfaces, SetInterfaces } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { callDriver } from "./call-driver.ts";
import type { Driver } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestChains } from "./guest-chains.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestName } from "./journal.ts";
import { messageOf } from "./message-of.ts";

/** A driver that needs longer than this has failed. It is shorter than the conductor's wait for the answer. */
const SET_MS = 15_000;
/** A message that waited longer for other orders of the guest is refused. Its conductor would no longer hear that it was carried out. */
const WAIT_MS_MAX = 2_500;
const LATER = "a later order was given";
/** The revisions of this many guests are remembered. */
const GUESTS_MAX = 10_000;

interface SetterDeps {
  readonly store: Pick<GuestStore, "guest" | "isBuried" | "revisionOf">;
  readonly chains: GuestChains;
  readonly driver: Pick<Driver, "capabilities" | "setInterfaces" | "addInterfaces">;
  readonly clock: Clock;
  readonly events: Pick<AgentEvents, "driverStuck" | "interfacesFailed">;
  readonly hosts: ReadonlySet<string>;
}

/**
 * Gives guests the interfaces of their servers' ports. A message names all of them, so a repeated one changes nothing, and a lost one is made up for by
 * the next one or by the guest's next start. The journal does not know of them: the driver knows what a guest has.
 */
export class InterfaceSetter {
  readonly #deps: SetterDeps;
  /** The latest revision whose interfaces each guest was to get since the agent started, and whether it has got them, oldest guest first. */
  readonly #heard = new Map<string, { readonly revision: number; readonly isDone: boolean }>();

  constructor(deps: SetterDeps) {
    this.#deps = deps;
  }

  /** Always answers, and never rejects. A message that is older than what the guest has obeyed, or that waited behind such an order, is refused. */
  async set(message: SetInterfaces, from: ConductorStream): Promise<void> {
    const { host, serverUuid, attemptId, query } = message;
    const { driver, chains, events, hosts } = this.#deps;
    const answer = (told: { readonly absent?: boolean; readonly unavailable?: boolean; readonly failed?: string }) => {
      const { absent = false, unavailable = false, failed = "" } = told;
      from.send({ body: { $case: "interfaces", value: { host, query, absent, unavailable, failed } } });
    };
    const name = { host, serverUuid, attemptId };
    const heardAtMs = this.#deps.clock.monotonic();
    if (!hosts.has(host) || !this.#exists(name)) return answer({ absent: true });
    if (!driver.capabilities.has("interfaces")) return answer({ unavailable: true });
    try {
      await chains.enter(name, (signal) => this.#carryOut(name, { message, heardAtMs }, signal));
      answer({});
    } catch (error) {
      events.interfacesFailed(name, messageOf(error));
      answer({ failed: messageOf(error) });
    }
  }

  /**
   * Gives a guest those of its server's interfaces that it lacks, because an agent ended before it was told of them, or their api ended. Such a message is not answered, and never
   * rejects. One that is older than what the guest has obeyed is ignored, and also one of the revision of which the guest has been given exactly the interfaces since the
   * agent started: then its server may be losing one, which the guest has released.
   */
  async complete({ host, serverUuid, attemptId, interfaces, revision }: CompleteInterfaces): Promise<void> {
    const { driver, chains, events, hosts } = this.#deps;
    const name = { host, serverUuid, attemptId };
    if (!hosts.has(host) || !this.#exists(name) || !driver.capabilities.has("interfaces")) return;
    const add = async (signal: AbortSignal): Promise<void> => {
      const { revision: heard, isDone } = this.#heardOf(name);
      if (!this.#exists(name) || revision < heard || (revision === heard && isDone)) return;
      await this.#call(name, signal, (raised) => driver.addInterfaces(name, interfaces?.interfaces ?? [], raised));
    };
    await chains.enter(name, add).catch((error: unknown) => events.interfacesFailed(name, messageOf(error)));
  }

  async #carryOut(
    name: GuestName,
    { message, heardAtMs }: { readonly message: SetInterfaces; readonly heardAtMs: number },
    signal: AbortSignal,
  ): Promise<void> {
    const { driver, clock } = this.#deps;
    const { interfaces, revision } = message;
    if (!this.#exists(name)) throw new Error("there is no such guest");
    if (clock.monotonic() - heardAtMs > WAIT_MS_MAX)
      throw new Error("the host was busy with another order for the guest: change the interfaces again");
    if (revision < this.#heardOf(name).revision) throw new Error(LATER);
    this.#remember(name, { revision, isDone: false });
    await this.#call(name, signal, (raised) => driver.setInterfaces(name, interfaces?.interfaces ?? [], raised));
    this.#remember(name, { revision, isDone: true });
  }

  async #call(name: GuestName, signal: AbortSignal, call: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { clock, events } = this.#deps;
    const what = "changing a guest's interfaces";
    await callDriver(call, { signal, timeoutMs: SET_MS, what, clock, onStuck: () => events.driverStuck(name, what) });
  }

  /** The latest revision that the guest has obeyed or was to obey, and whether it has exactly the interfaces of that revision. */
  #heardOf(name: GuestName): { readonly revision: number; readonly isDone: boolean } {
    const heard = this.#heard.get(keyOf(name)) ?? { revision: 0, isDone: false };
    const obeyed = this.#deps.store.revisionOf(name.host, name.attemptId);
    return obeyed > heard.revision ? { revision: obeyed, isDone: false } : heard;
  }

  #exists(name: GuestName): boolean {
    const entry = this.#deps.store.guest(name.host, name.attemptId);
    const isThere = entry !== undefined && entry.state !== "building" && entry.state !== "failed";
    return isThere && !this.#deps.store.isBuried(name);
  }

  #remember(name: GuestName, heard: { readonly revision: number; readonly isDone: boolean }): void {
    this.#heard.delete(keyOf(name));
    this.#heard.set(keyOf(name), heard);
    const [oldest] = this.#heard.keys();
    if (this.#heard.size > GUESTS_MAX && oldest !== undefined) this.#heard.delete(oldest);
  }
}

const keyOf = ({ host, attemptId }: GuestName): string => `${host} ${attemptId}`;
