import type { AgentStream } from "../../core/agent/link.ts";
import { isOfGuestThatTakesNothing, LISTENS_AT_CHARS_MAX } from "../../core/agent/listen-address.ts";
import { directPortIds } from "../../core/pinning/direct-ports.ts";
import { destinationOf, type OperationFacts } from "../../core/tasks/operation-facts.ts";
import { isLiveMove } from "../../core/tasks/operation-kinds.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import { type AttemptReport, GuestState, type PortDevice } from "../../proto/gen/berth/agent.ts";
import { NO_NEEDS } from "./neighbour-needs.ts";
import { type AskEffect, orderOf } from "./operation-orders.ts";
import type { RunPorts } from "./task-run.ts";

/** How often a task is released at most to conductors that reach the destination. */
const RELEASES_MAX = 3;
/** How often a conductor looks for a destination that is not connected to it, during the grace of a host. */
const LOOKS_MAX = 10;

/**
 * What the destinations of one operation have said when they reported that their guests are prepared: the addresses at which they listen for a hand-over, and
 * the functions of the hosts that connect the server's direct ports. It is kept in memory only: a conductor that takes the task over asks the
 * destination again, with a repeated `Build`, which is answered by the attempt's state out of the agent's records.
 */
export class PreparedDestinations {
  readonly #facts: OperationFacts;
  readonly #tenure: Tenure;
  readonly #ports: Pick<RunPorts, "streamOf" | "settings" | "releaser">;
  /** By selection. Empty where a destination named no address, or did not answer. */
  readonly #addresses = new Map<number, string>();
  readonly #devices = new Map<number, readonly PortDevice[]>();
  #asked: number | null = null;
  /** The connection over which the destination was asked last. Null if it was not connected then. */
  #askedOver: AgentStream | null = null;
  /** How many waits for the destination have ended. */
  #looks = 0;

  constructor(facts: OperationFacts, tenure: Tenure, ports: Pick<RunPorts, "streamOf" | "settings" | "releaser">) {
    this.#facts = facts;
    this.#tenure = tenure;
    this.#ports = ports;
  }

  /** Where the destination listens for a hand-over. Empty where nothing is known of it. */
  addressOf(selection: number): string {
    return this.#addresses.get(selection) ?? "";
  }

  /** The functions that connect the server's direct ports at the destination. Empty where the destination named none. */
  devicesOf(selection: number): readonly PortDevice[] {
    return this.#devices.get(selection) ?? [];
  }

  /** Whether the destination must be asked before the order: for its address, or for the functions to which the server's direct ports are bound there. */
  lacks({ ask, selection }: Pick<AskEffect, "ask" | "selection">): boolean {
    const needs = ask === "hand-over" || (ask === "start-destination" && directPortIds(this.#facts.after).size > 0);
    return needs && !this.#addresses.has(selection);
  }

  /**
   * Why the source must not be told to hand over to the destination: an agent that does not know a kind of live move makes an empty guest, and an agent of such a
   * version at the source would end its guest for it. Null if it may be told.
   */
  whyNotTo({ ask, selection }: Pick<AskEffect, "ask" | "selection">): string | null {
    if (ask !== "hand-over" || !isLiveMove(this.#facts.kind)) return null;
    if (!isOfGuestThatTakesNothing(this.addressOf(selection))) return null;
    const host = destinationOf(this.#facts, selection)?.host;
    return `${host} has prepared a guest that takes no memory: update that host's agent, and migrate the server again`;
  }

  /** Handles a destination's report on its guest. Returns true when the destination was asked for it and has now answered. */
  told({ state, listensAt, devices }: AttemptReport, selection: number): boolean {
    if (state === GuestState.GUEST_STATE_BUILDING) return false;
    if (devices !== undefined) this.#devices.set(selection, devices.devices);
    // Agents refuse longer addresses of their drivers.
    const isSound = state === GuestState.GUEST_STATE_PREPARED && listensAt.length <= LISTENS_AT_CHARS_MAX;
    if (isSound) this.#addresses.set(selection, listensAt);
    if (this.#asked !== selection) return false;
    this.#asked = null;
    if (!isSound) this.#addresses.set(selection, "");
    return true;
  }

  /**
   * Asks the destination of a hand-over, if it is connected here. Returns after how many milliseconds `doWithout` is due. A conductor that takes a task over may
   * be ahead of the destination's agent, which dials it a little later, so it looks for the agent repeatedly.
   */
  ask(effect: AskEffect, traceparent: string): number {
    // Each destination has a grace of its own.
    if (this.#asked !== effect.selection) this.#looks = 0;
    this.#asked = effect.selection;
    const { hostGraceMs } = this.#ports.settings;
    const place = destinationOf(this.#facts, effect.selection);
    const stream = place === null ? null : this.#ports.streamOf(place.host);
    this.#askedOver = stream;
    if (place === null || stream === null) return hostGraceMs / LOOKS_MAX;
    // The destination has made its guest already, so it does not get the connections of volumes and ports again.
    const given = { place, timeoutMs: this.#ports.settings.attemptTimeoutMs, traceparent, listensAt: "" };
    stream.send(orderOf(this.#facts, { ...effect, ask: "prepare" }, { ...given, needs: NO_NEEDS }));
    return hostGraceMs;
  }

  /**
   * Ends the wait for a destination that has not answered. Resolves with `again` when it has a connection over which it was not asked, or had none and is to be
   * looked for again, and with `released` when another conductor reaches it and has the task now. Otherwise the source is asked without an address: it may have
   * handed over long ago, and if not, it refuses. Rejects when the conductor stops.
   */
  async doWithout(selection: number): Promise<"again" | "released" | "unknown"> {
    this.#looks += 1;
    const host = destinationOf(this.#facts, selection)?.host;
    const stream = host === undefined ? null : this.#ports.streamOf(host);
    const isUnasked = stream !== null && stream !== this.#askedOver;
    if (isUnasked || (this.#askedOver === null && this.#looks < LOOKS_MAX)) return "again";
    if (host !== undefined && stream === null) {
      const unreached = await this.#ports.releaser.tryRelease(this.#tenure, host, RELEASES_MAX);
      if (unreached === "released") return unreached;
    }
    if (!this.#addresses.has(selection)) this.#addresses.set(selection, "");
    this.#asked = null;
    return "unknown";
  }
}
