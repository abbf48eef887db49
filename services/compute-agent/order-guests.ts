import type { ConductorStream } from "../../core/agent/link.ts";
import type { HandOff, Power } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { type Driver, POWER_VERBS, type PowerVerb } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestEntry } from "./guest-table.ts";
import type { GuestName, GuestState } from "./journal.ts";
import { messageOf } from "./message-of.ts";
import type { AttemptReporter } from "./report-attempts.ts";

/** A driver that needs longer to start or stop a guest has failed. */
const POWER_TIMEOUT_MS = 60_000;
const HAND_OFF_TIMEOUT_MS_MAX = 24 * 3_600_000;

/** What a verb leaves. */
const STATE_AFTER: Readonly<Record<PowerVerb, GuestState>> = {
  start: "running",
  stop: "stopped",
  reboot: "running",
  "hard-reboot": "running",
  pause: "paused",
  unpause: "running",
};

export interface OrderDeps {
  readonly store: GuestStore;
  readonly driver: Driver;
  readonly reporter: AttemptReporter;
  readonly clock: Clock;
  readonly events: AgentEvents;
}

interface Work {
  readonly orderId: string;
  readonly revision: number;
  readonly handsOver: boolean;
  readonly asked: Set<ConductorStream>;
  readonly cancel: AbortController;
  readonly run: (signal: AbortSignal) => Promise<void>;
}

interface Latest {
  readonly work: Work;
  ended: Promise<void>;
  /** Null: it is on its way; empty: done; else why not. */
  answer: string | null;
}

const LATER_GIVEN = "a later order was given";

/**
 * Carries out orders that change a guest's power: one at a time for each guest, each at most once as long as the agent lives and never
 * again once it was obeyed, and none that is older than one it has obeyed. A newer order calls off the one that runs. A step of an
 * operation gives one order, so that two of one revision are its plain and its forced form: the forced one comes later.
 */
export class GuestOrders {
  readonly #deps: OrderDeps;
  /** The latest order of each guest, running or done. */
  readonly #latest = new Map<string, Latest>();

  constructor(deps: OrderDeps) {
    this.#deps = deps;
  }

  power(order: Power, from: ConductorStream): void {
    const { driver, clock } = this.#deps;
    const name = nameOf(order);
    const verb = POWER_VERBS.find((one) => one === order.verb);
    if (verb === undefined) {
      answer(order, from, `no such verb: ${order.verb}`);
      return;
    }
    this.#take(order, from, async () => {
      const { state } = this.#guest(name);
      // Also when it is in that state already, as far as the journal knows: a hand-over that broke off may have stopped it.
      if (state !== "prepared" || verb !== "stop") {
        const driven = state === "prepared" && verb === "start" ? driver.start(name) : driver.power(name, verb);
        await withDeadline(driven, POWER_TIMEOUT_MS, `the driver's ${verb}`, clock);
      }
      await this.#record(name, STATE_AFTER[verb], order);
    });
  }

  handOff(order: HandOff, from: ConductorStream): void {
    const { driver, clock } = this.#deps;
    const name = nameOf(order);
    const { toHost, toAttemptId, live, force, orderId } = order;
    this.#take(order, from, async (signal) => {
      this.#guest(name);
      const timeoutMs = Math.min(
        order.timeoutMs > 0 ? order.timeoutMs : HAND_OFF_TIMEOUT_MS_MAX,
        HAND_OFF_TIMEOUT_MS_MAX,
      );
      const driven = driver.handOff({ ...name, toHost, toAttemptId, live, force, orderId }, signal);
      await withDeadline(driven, timeoutMs, "handing over", clock);
      await this.#record(name, "stopped", order);
    });
  }

  /** The revision that a guest has obeyed, or that an order on its way has. */
  revisionOf(name: GuestName): number {
    const known = this.#deps.store.revisionOf(name.host, name.attemptId);
    return Math.max(known, this.#latest.get(keyOf(name))?.work.revision ?? 0);
  }

  #take(order: Power | HandOff, from: ConductorStream, run: Work["run"]): void {
    const name = nameOf(order);
    const before = this.#latest.get(keyOf(name));
    const said = this.#known(order, name, before);
    if (said === "asked") before?.work.asked.add(from);
    else if (said !== null) answer(order, from, said);
    if (said !== null) return;
    before?.work.cancel.abort();
    const cancel = new AbortController();
    const { orderId, revision } = order;
    const work: Work = { orderId, revision, handsOver: "toHost" in order, asked: new Set([from]), cancel, run };
    const entry: Latest = { work, answer: null, ended: Promise.resolve() };
    entry.ended = (before?.ended ?? Promise.resolve())
      .then(() => this.#run(name, work))
      .then((failed) => {
        entry.answer = failed;
        for (const stream of work.asked) answer(order, stream, failed);
      });
    this.#latest.set(keyOf(name), entry);
  }

  /** The answer that is known already; `asked`: it is being carried out. Null: it is to be carried out, also one that failed before. */
  #known(order: Power | HandOff, name: GuestName, latest: Latest | undefined): string | null {
    if (this.#deps.store.isBuried(name)) return "the server was destroyed here before";
    if (latest?.work.orderId === order.orderId)
      return latest.answer === null ? "asked" : latest.answer === "" ? "" : null;
    const revision = this.revisionOf(name);
    if (order.revision !== revision) return order.revision < revision ? LATER_GIVEN : null;
    return this.#knownOfStep(order, name, latest?.work.revision === revision ? latest : undefined);
  }

  /** As `#known`, by what the guest was told in the same step; without `latest` the journal alone knows of it. */
  #knownOfStep(order: Power | HandOff, name: GuestName, latest: Latest | undefined): string | null {
    const guest = this.#deps.store.guest(name.host, name.attemptId);
    const obeyed = guest === undefined || guest.state === "failed" ? undefined : guest.orderId;
    if (latest === undefined && (obeyed === undefined || obeyed === order.orderId))
      return obeyed === undefined ? null : "";
    if (!("force" in order && order.force)) return LATER_GIVEN;
    if (latest === undefined) return guest?.state === "stopped" ? "" : LATER_GIVEN;
    if (!latest.work.handsOver) return LATER_GIVEN;
    return latest.answer === "" ? "" : null;
  }

  /** Empty: done. Else why not. */
  async #run(name: GuestName, work: Work): Promise<string> {
    const { store, driver, events } = this.#deps;
    if (work.cancel.signal.aborted) return LATER_GIVEN;
    try {
      await work.run(work.cancel.signal);
    } catch (error) {
      events.startFailed(name, messageOf(error));
      return messageOf(error);
    }
    // Destroyed while it was ordered about: what the driver made of both is not to be relied on.
    if (store.isBuried(name)) {
      await driver.destroy(name).catch((error) => events.leftover(name, messageOf(error)));
      return "the server was destroyed here meanwhile";
    }
    return "";
  }

  #guest(name: GuestName): Exclude<GuestEntry, { readonly state: "failed" }> {
    const entry = this.#deps.store.guest(name.host, name.attemptId);
    if (entry === undefined || entry.state === "building" || entry.state === "failed")
      throw new Error("there is no such guest");
    return entry;
  }

  async #record(name: GuestName, state: GuestState, { revision, orderId }: Power | HandOff): Promise<void> {
    const { store, reporter, clock } = this.#deps;
    if (store.isBuried(name) || store.guest(name.host, name.attemptId) === undefined) return;
    await store.record({ kind: "guest", ...name, state, atMs: clock.now(), revision, orderId });
    reporter.detach(name.attemptId);
  }
}

function answer(order: Power | HandOff, to: ConductorStream, failed: string): void {
  const { host, serverUuid, attemptId, orderId } = order;
  to.send({ body: { $case: "ordered", value: { host, serverUuid, attemptId, orderId, failed } } });
}

function nameOf({ host, serverUuid, attemptId }: Power | HandOff): GuestName {
  return { host, serverUuid, attemptId };
}

const keyOf = (name: GuestName): string => `${name.host} ${name.attemptId}`;
