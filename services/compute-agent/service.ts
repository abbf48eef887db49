import type { Registry } from "prom-client";
import type { Tracing } from "../../adapters/telemetry/tracing.ts";
import type { ConductorDialer, ConductorStream } from "../../core/agent/link.ts";
import { GuestState, type Hello, type ListGuests } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { Service } from "../../runtime/service.ts";
import { GuestBuilder } from "./build-guests.ts";
import { ConductorLinks, type ConductorOrder } from "./conductor-links.ts";
import { destroyGuests } from "./destroy-guests.ts";
import { DESTROY_TIMEOUT_MS, type Driver, type KeptState } from "./driver.ts";
import { AgentEvents } from "./events.ts";
import { GuestStore } from "./guest-store.ts";
import type { GuestEntry } from "./guest-table.ts";
import { type HostConfig, treeOf } from "./host-config.ts";
import type { GuestName, Journal } from "./journal.ts";
import { messageOf } from "./message-of.ts";
import { GuestOrders } from "./order-guests.ts";
import { AttemptReporter, reportOf } from "./report-attempts.ts";
import { TreeReporter } from "./report-trees.ts";
import { startGuest } from "./start-guest.ts";

export interface ComputeAgentDeps {
  readonly dialer: ConductorDialer;
  readonly journal: Journal;
  readonly driver: Driver;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly tracing: Tracing;
  /** The agent cannot go on (its journal failed): end the process. */
  readonly fail: (error: unknown) => void;
}

export interface ComputeAgentSettings {
  /** The same after each restart. */
  readonly agentId: string;
  /** Addresses of all conductors of the cell. */
  readonly conductors: readonly string[];
  readonly hosts: readonly HostConfig[];
  /** Builds at a time on a host that has no limit of its own. */
  readonly buildLimit: number;
}

export interface ComputeAgent extends Service {
  /** Every host's tree was taken over by a conductor: the cell may use them. */
  readonly ready: boolean;
  /** The guests that exist according to the journal. */
  guests(): readonly GuestEntry[];
  /** Loses all streams to conductors, as when the network fails. */
  loseConnections(): void;
}

/**
 * One process that carries hosts. `start` resolves when the guests of the last process are known again and conductors are
 * being dialled; `ready` follows.
 */
export function createComputeAgent(deps: ComputeAgentDeps, settings: ComputeAgentSettings): ComputeAgent {
  let running: RunningAgent | null = null;
  const guests = () => running?.store.all().filter((entry) => entry.state !== "failed") ?? [];
  const events = new AgentEvents({
    logger: deps.logger,
    registry: deps.registry,
    tracing: deps.tracing,
    fail: deps.fail,
    guestCount: () => guests().length,
  });
  return {
    get ready() {
      return running?.trees.settled ?? false;
    },
    guests,
    loseConnections: () => running?.links.drop("the connection was lost"),
    async start() {
      const store = await GuestStore.open(deps.journal, deps.clock);
      const left = await recoverGuests({ store, driver: deps.driver, clock: deps.clock, events });
      running = assemble(deps, settings, { store, events });
      for (const name of left) running.builder.retain(name, INTERRUPTED);
      running.links.start();
    },
    async close() {
      const closing = running;
      running = null;
      if (closing === null) return;
      closing.trees.stop();
      await closing.links.close();
      // The journal first: builds that end now stay in it as interrupted, for the next process to clean up.
      await closing.store.close();
      closing.builder.cancelAll();
    },
  };
}

interface RunningAgent {
  readonly store: GuestStore;
  readonly builder: GuestBuilder;
  readonly links: ConductorLinks;
  readonly trees: TreeReporter;
}

type KeptGuest = GuestEntry & { readonly state: KeptState };

const INTERRUPTED = { failure: "reschedule", reason: "the agent was restarted while it built the server" } as const;

/**
 * After a restart: what outlived it is handed to the driver, then what was half built or already condemned is removed.
 * Returns what the driver failed to remove: an agent must come up even so, for its other guests.
 */
async function recoverGuests(deps: {
  readonly store: GuestStore;
  readonly driver: Driver;
  readonly clock: Clock;
  readonly events: AgentEvents;
}): Promise<readonly GuestName[]> {
  const { store, driver, clock, events } = deps;
  const guests = store.all().filter((entry) => entry.state !== "failed");
  const lost = new Set(guests.filter((entry) => entry.state === "building" || store.isBuried(entry)));
  const within = (what: string, work: Promise<void>) => withDeadline(work, DESTROY_TIMEOUT_MS, what, clock);
  const left: GuestName[] = [];
  const remove = async ({ host, serverUuid, attemptId }: GuestEntry) => {
    const name = { host, serverUuid, attemptId };
    try {
      await within("the driver's destroy", driver.destroy(name));
    } catch (error) {
      events.leftover(name, messageOf(error));
      left.push(name);
      return;
    }
    events.interrupted(name);
    if (store.isBuried(name)) await store.record({ kind: "gone", ...name });
    else await store.record({ kind: "failed", ...name, ...INTERRUPTED, atMs: clock.now() });
  };
  const kept = guests.filter((entry) => !lost.has(entry)) as KeptGuest[];
  const stopped = await withDeadline(driver.adopt(kept), DESTROY_TIMEOUT_MS, "the driver's adopt", clock).catch(
    (error) => {
      events.adoptFailed(messageOf(error));
      return [];
    },
  );
  for (const { host, serverUuid, attemptId } of stopped) {
    const record = { kind: "guest", host, serverUuid, attemptId, state: "stopped", atMs: clock.now() } as const;
    await store.record({ ...record, revision: store.revisionOf(host, attemptId) });
  }
  await Promise.all([...lost].map(remove));
  return left;
}

function assemble(
  deps: ComputeAgentDeps,
  settings: ComputeAgentSettings,
  parts: { readonly store: GuestStore; readonly events: AgentEvents },
): RunningAgent {
  const { clock, driver } = deps;
  const { store, events } = parts;
  const anyWelcomed = (): ConductorStream | null => links.anyWelcomed();
  const reporter = new AttemptReporter(store, anyWelcomed);
  const limits = new Map(settings.hosts.map((host) => [host.name, host.build_limit ?? settings.buildLimit]));
  const builder = new GuestBuilder({ store, driver, reporter, clock, events, limits });
  const trees = new TreeReporter({ clock, events, anyWelcomed, trees: settings.hosts.map(treeOf) });
  const orders = new GuestOrders({ store, driver, reporter, clock, events });
  const work = { store, driver, builder, reporter, orders, clock, events };
  const failed = (error: unknown) => events.journalFailed(error);
  const onOrder = (order: ConductorOrder, from: ConductorStream): void => {
    switch (order.$case) {
      case "build":
        builder.build(order.value, from);
        break;
      case "start":
        startGuest(work, order.value, from).catch(failed);
        break;
      case "destroy":
        destroyGuests(work, order.value, from).catch(failed);
        break;
      case "power":
        orders.power(order.value, from);
        break;
      case "handOff":
        orders.handOff(order.value, from);
        break;
      case "listGuests":
        listGuests(store, order.value, from);
        break;
      case "tree":
        trees.judged(order.value, from);
        break;
      case "welcome":
      case "heartbeat":
        break;
      default:
        order satisfies never;
    }
  };
  const hello = (): Hello => ({
    agentId: settings.agentId,
    hosts: settings.hosts.map(({ name }) => ({ host: name, guests: guestsOf(store, name) })),
  });
  const onWelcome = (stream: ConductorStream) => trees.welcomed(stream);
  const onLost = (stream: ConductorStream) => {
    trees.lost(stream);
    reporter.lost(stream);
  };
  const handlers = { hello, onOrder, onWelcome, onLost };
  const links = new ConductorLinks({ dialer: deps.dialer, addresses: settings.conductors, clock, events, handlers });
  return { store, builder, links, trees };
}

function listGuests(store: GuestStore, order: ListGuests, from: ConductorStream): void {
  const value = { host: order.host, query: order.query, guests: guestsOf(store, order.host) };
  from.send({ body: { $case: "guests", value } });
}

function guestsOf(store: GuestStore, host: string) {
  return store.guestsOf(host).map((entry) => ({
    serverUuid: entry.serverUuid,
    attemptId: entry.attemptId,
    state: store.isSettling(entry) ? GuestState.GUEST_STATE_BUILDING : reportOf(entry).state,
  }));
}
