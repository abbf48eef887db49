import type { Registry } from "prom-client";
import type { ConsoleListener } from "../../adapters/consoles/console-listener.ts";
import type { Tracing } from "../../adapters/telemetry/tracing.ts";
import type { ConductorDialer, ConductorStream } from "../../core/agent/link.ts";
import { filesOf } from "../../core/tasks/server-volumes.ts";
import { type Compared, type Guest, GuestState, type Hello, type ListGuests } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { Service } from "../../runtime/service.ts";
import { AttemptReporter, attemptReportOf } from "./attempt-reporter.ts";
import type { ConductorOrder } from "./conductor-link.ts";
import { ConductorLinks } from "./conductor-links.ts";
import { ConsoleOpener } from "./console-opener.ts";
import { ConsoleReader } from "./console-reader.ts";
import type { Driver } from "./driver.ts";
import { AgentEvents } from "./events.ts";
import { GuestBuilder } from "./guest-builder.ts";
import { GuestChains } from "./guest-chains.ts";
import { GuestDestroyer } from "./guest-destroyer.ts";
import { GuestObserver, type ObserverSettings } from "./guest-observer.ts";
import { GuestOrders } from "./guest-orders.ts";
import { GuestRemover } from "./guest-remover.ts";
import { GuestStore } from "./guest-store.ts";
import type { GuestEntry } from "./guest-table.ts";
import { type HostConfig, treeOf } from "./host-config.ts";
import { fixedHosts, type WatchedHosts } from "./host-source.ts";
import { HostWatcher } from "./host-watcher.ts";
import { InterfaceSetter } from "./interface-setter.ts";
import type { Journal } from "./journal.ts";
import { PasswordChanger } from "./password-changer.ts";
import { readDiagnostics } from "./read-diagnostics.ts";
import { readPinning } from "./read-pinning.ts";
import { INTERRUPTED, recoverGuests } from "./recover-guests.ts";
import { TreeReporter } from "./tree-reporter.ts";

export interface ComputeAgentDeps {
  readonly dialer: ConductorDialer;
  readonly journal: Journal;
  readonly driver: Driver;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly tracing: Tracing;
  /** The listener through which clients reach the consoles of guests. Without it, or with null, no client reaches a console. */
  readonly consoles?: Pick<ConsoleListener, "address" | "expect"> | null;
  /** Ends the process, because the agent's journal failed. */
  readonly fail: (error: unknown) => void;
}

export interface ComputeAgentSettings extends ObserverSettings {
  /** The agent's id, which stays the same after each restart. */
  readonly agentId: string;
  /** Addresses of all conductors of the cell. */
  readonly conductors: readonly string[];
  readonly hosts: readonly HostConfig[];
  /** How many builds may run at a time on a host without its own limit. */
  readonly buildLimit: number;
  /** When the hosts booted, in milliseconds since the epoch. When it is left out, the time is unknown. */
  readonly bootedAtMs?: number;
  /** Looks at the hosts again. When it is left out, the hosts stay as they are. */
  readonly watch?: { readonly source: WatchedHosts; readonly everyMs: number };
}

export interface ComputeAgent extends Service {
  /** True when a conductor has accepted every host's tree, so that the cell may use the hosts. */
  readonly ready: boolean;
  /** The guests that exist according to the journal. */
  guests(): readonly GuestEntry[];
  /** Looks at the hosts now, and reports what has changed. */
  lookAtHosts(): void;
  /** Closes all streams to conductors, as when the network fails. */
  loseConnections(): void;
}

/**
 * One process that carries hosts. `start` resolves when the guests of the last process are known again, which may wait for the driver if the journal was lost, and conductors are being dialled.
 * `ready` becomes true later.
 */
export function createComputeAgent(deps: ComputeAgentDeps, settings: ComputeAgentSettings): ComputeAgent {
  let running: RunningAgent | null = null;
  const closing = new AbortController();
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
    lookAtHosts: () => running?.watcher.look(),
    loseConnections: () => running?.links.drop("the connection was lost"),
    async start() {
      const store = await GuestStore.open(deps.journal, deps.clock);
      const { driver, clock } = deps;
      const chains = new GuestChains();
      const remover = new GuestRemover({ chains, driver, clock, events });
      const observer = new GuestObserver({ store, chains, driver, clock, events, settings });
      driver.watch((guest) => void observer.changed(guest).catch((error) => events.journalFailed(error)));
      const hosts = settings.hosts.map(({ name }) => name);
      const recovering = { store, driver, hosts, remover, observer, clock, events, signal: closing.signal };
      const left = await recoverGuests(recovering).catch(async (error: unknown) => {
        if (closing.signal.aborted) await store.close();
        throw error;
      });
      running = assemble(deps, settings, { store, chains, remover, observer, events });
      for (const name of left) running.builder.retain(name, INTERRUPTED);
      running.links.start();
      running.watcher.start();
    },
    async close() {
      closing.abort(new Error("the agent was closed before its driver had listed its guests"));
      const ending = running;
      running = null;
      if (ending === null) return;
      ending.watcher.stop();
      ending.trees.stop();
      await ending.links.close();
      // The journal closes first. Builds that end now stay in it as interrupted, and the next process cleans them up.
      await ending.store.close();
      ending.builder.cancelAll();
      ending.observer.close();
    },
  };
}

interface RunningAgent {
  readonly store: GuestStore;
  readonly builder: GuestBuilder;
  readonly observer: GuestObserver;
  readonly links: ConductorLinks;
  readonly trees: TreeReporter;
  readonly watcher: HostWatcher;
}

function assemble(
  deps: ComputeAgentDeps,
  settings: ComputeAgentSettings,
  parts: {
    readonly store: GuestStore;
    readonly chains: GuestChains;
    readonly remover: GuestRemover;
    readonly observer: GuestObserver;
    readonly events: AgentEvents;
  },
): RunningAgent {
  const { clock, driver } = deps;
  const { store, remover, observer, events } = parts;
  const anyWelcomed = (): ConductorStream | null => links.anyWelcomed();
  const reporter = new AttemptReporter(store, anyWelcomed, (name) => driver.pinningOf(name));
  const limits = new Map(settings.hosts.map((host) => [host.name, host.build_limit ?? settings.buildLimit]));
  const builder = new GuestBuilder({ store, driver, remover, reporter, clock, events, limits });
  const treeOfHost = (host: HostConfig) => treeOf(host, driver.traits, settings.bootedAtMs);
  const known = settings.hosts.map(treeOfHost);
  const trees = new TreeReporter({ clock, events, anyWelcomed, trees: known });
  const { source, everyMs } = settings.watch ?? { source: fixedHosts(settings.hosts), everyMs: 60_000 };
  const watcher = new HostWatcher({
    ...{ clock, events, source, everyMs, treeOf: treeOfHost, hosts: settings.hosts },
    onChanged: (tree) => trees.update(tree),
  });
  const orders = new GuestOrders({ ...parts, driver, reporter, clock });
  const destroyer = new GuestDestroyer({ store, remover, builder, orders, reporter, clock, events });
  const failed = (error: unknown) => events.journalFailed(error);
  observer.watch(({ host, attemptId }) => {
    const guest = store.guest(host, attemptId);
    // A conductor that is not connected now finds the guest in the next list.
    if (guest !== undefined)
      anyWelcomed()?.send({ body: { $case: "stopped", value: { host, guest: listedGuest(store, guest) } } });
  });
  const hosts = new Set(settings.hosts.map(({ name }) => name));
  const consoles = new ConsoleReader({ driver, hosts, clock, events });
  const opener = new ConsoleOpener({ driver, listener: deps.consoles ?? null, hosts, clock, events });
  const interfaces = new InterfaceSetter({ ...parts, driver, clock, hosts });
  const passwords = new PasswordChanger({ ...parts, driver, clock, hosts });
  const parties = {
    driver,
    hosts,
    interfaces,
    passwords,
    consoles,
    opener,
    builder,
    destroyer,
    orders,
    trees,
    store,
    observer,
    failed,
  };
  const onOrder = (order: ConductorOrder, from: ConductorStream) => obey(parties, order, from);
  const hello = () => helloOf(settings, store);
  const onWelcome = (stream: ConductorStream) => trees.welcomed(stream);
  const onLost = (stream: ConductorStream) => {
    trees.lost(stream);
    reporter.lost(stream);
  };
  const handlers = { hello, onOrder, onWelcome, onLost };
  const links = new ConductorLinks({ dialer: deps.dialer, addresses: settings.conductors, clock, events, handlers });
  return { store, builder, observer, links, trees, watcher };
}

/** The parts of the agent that carry out the conductors' messages. */
interface Parties {
  readonly driver: Driver;
  readonly hosts: ReadonlySet<string>;
  readonly interfaces: InterfaceSetter;
  readonly passwords: PasswordChanger;
  readonly consoles: ConsoleReader;
  readonly opener: ConsoleOpener;
  readonly builder: GuestBuilder;
  readonly destroyer: GuestDestroyer;
  readonly orders: GuestOrders;
  readonly trees: TreeReporter;
  readonly store: GuestStore;
  readonly observer: GuestObserver;
  readonly failed: (error: unknown) => void;
}

/** Passes a conductor's message to the part of the agent that carries it out. */
function obey(parties: Parties, order: ConductorOrder, from: ConductorStream): void {
  const { builder, destroyer, orders, trees, store, observer, failed } = parties;
  switch (order.$case) {
    case "build":
      builder.build(order.value, from);
      break;
    case "start":
      orders.start(order.value, from);
      break;
    case "destroy":
      destroyer.destroy(order.value, from).catch(failed);
      break;
    case "power":
      orders.power(order.value, from);
      break;
    case "handOff":
      orders.handOff(order.value, from);
      break;
    case "listGuests":
      listGuests({ store, observer }, order.value, from).catch(failed);
      break;
    case "readConsole":
      parties.consoles.read(order.value, from).catch(failed);
      break;
    case "readPinning":
      readPinning(parties, order.value, from);
      break;
    case "readDiagnostics":
      readDiagnostics(parties, order.value, from).catch(failed);
      break;
    case "setInterfaces":
      parties.interfaces.set(order.value, from).catch(failed);
      break;
    case "completeInterfaces":
      parties.interfaces.complete(order.value).catch(failed);
      break;
    case "changePassword":
      parties.passwords.change(order.value, from).catch(failed);
      break;
    case "openConsole":
      parties.opener.open(order.value, from).catch(failed);
      break;
    case "tree":
      trees.judged(order.value, from);
      break;
    case "compared":
      noteCompared(store, order.value, from).catch(failed);
      break;
    case "welcome":
    case "heartbeat":
      break;
    default:
      order satisfies never;
  }
}

function helloOf({ agentId, hosts }: ComputeAgentSettings, store: GuestStore): Hello {
  return {
    agentId,
    hosts: hosts.map(({ name }) => ({
      host: name,
      guests: guestsOf(store, name),
      ...store.comparedWith(name),
    })),
  };
}

/** A host is in one cell. The agent leaves a conductor of another cell, which it may have reached before it knew its own. */
async function noteCompared(store: GuestStore, { host, ...database }: Compared, from: ConductorStream): Promise<void> {
  const { cell } = store.comparedWith(host);
  if (cell === undefined || database.cell === undefined || database.cell === cell) await store.compared(host, database);
  else from.close(`host ${host} is in cell ${cell}, and this conductor is one of cell ${database.cell}`);
}

/** Lists guests in their real state, not as the agent left them, because a guest may have shut itself down. */
async function listGuests(
  { store, observer }: { readonly store: GuestStore; readonly observer: GuestObserver },
  order: ListGuests,
  from: ConductorStream,
): Promise<void> {
  await observer.correct(store.guestsOf(order.host));
  const value = { host: order.host, query: order.query, guests: guestsOf(store, order.host) };
  from.send({ body: { $case: "guests", value } });
}

function guestsOf(store: GuestStore, host: string) {
  return store.guestsOf(host).map((entry) => listedGuest(store, entry));
}

function listedGuest(store: GuestStore, entry: GuestEntry): Guest {
  const isSettling = store.isSettling(entry);
  return {
    serverUuid: entry.serverUuid,
    attemptId: entry.attemptId,
    state: isSettling ? GuestState.GUEST_STATE_BUILDING : attemptReportOf(entry).state,
    revision: store.revisionOf(entry.host, entry.attemptId),
    stopCause: isSettling || entry.state !== "stopped" ? "" : (entry.cause ?? ""),
    heardRevision: store.heardBy(entry),
    found: entry.state !== "failed" && (entry.isFound ?? false),
    files: entry.state === "failed" ? [] : filesOf({ volumes: entry.volumes ?? [] }),
  };
}
