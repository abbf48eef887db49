import { Counter, Gauge, type Registry } from "prom-client";
import { QuickHistogram } from "../../adapters/telemetry/quick-histogram.ts";
import type { Tracing } from "../../adapters/telemetry/tracing.ts";
import type { AttemptFailure } from "../../core/tasks/build-task.ts";
import type { Logger } from "../../runtime/logger.ts";
import { type GuestName, JournalError } from "./journal.ts";
import { messageOf } from "./message-of.ts";
import type { Span } from "./ports.ts";
import { traceBuild } from "./trace-build.ts";

export interface AgentEventsOptions {
  readonly logger: Logger;
  readonly registry: Registry;
  readonly tracing: Tracing;
  /** Ends the process, because the agent cannot continue. */
  readonly fail: (error: unknown) => void;
  readonly guestCount: () => number;
}

/** A warning about many guests names the servers of so many of them. */
const GUESTS_SHOWN = 3;

/** Reports events that are useful for operators. Each method writes a log line, updates a metric or begins a span. */
export class AgentEvents {
  readonly #options: AgentEventsOptions;
  readonly #logger: Logger;
  readonly #metrics: ReturnType<typeof createMetrics>;
  /** The latest reason of each conductor that has not welcomed this agent, by address. */
  readonly #refusals = new Map<string, string>();

  constructor(options: AgentEventsOptions) {
    this.#options = options;
    this.#logger = options.logger;
    this.#metrics = createMetrics(options);
  }

  welcomed(address: string, conductorId: string): void {
    this.#metrics.conductors.inc();
    this.#refusals.delete(address);
    this.#logger.info({ address, conductorId }, "a conductor accepted this agent");
  }

  /** Each address is dialled repeatedly, so a reason is logged only when it differs from the last one. */
  notWelcomed(address: string, reason: string): void {
    if (this.#refusals.get(address) === reason) return;
    this.#refusals.set(address, reason);
    this.#logger.error(
      { address, reason },
      "a conductor could not be reached, or refused this agent; the agent keeps trying to connect",
    );
  }

  /** This agent has closed the connection itself, because it stops. */
  left(address: string): void {
    this.#metrics.conductors.dec();
    this.#logger.info({ address }, "the connection to a conductor was closed, because the agent stops");
  }

  lost(address: string, reason: string): void {
    this.#metrics.conductors.dec();
    this.#logger.warn({ address, reason }, "the connection to a conductor was lost; the agent connects again");
  }

  /** The guests that the end of the agent's previous process has left unfinished. */
  interrupted(guests: readonly GuestName[]): void {
    const why = "because the agent's previous process ended while it was building or removing";
    this.#warnOf(guests, `guests were removed, ${why} them`, `a guest was removed, ${why} it`);
  }

  guestsTakenOver(guests: readonly GuestName[]): void {
    this.#metrics.takenOver.inc(guests.length);
    this.#warnOf(
      guests,
      "the agent has taken over guests that its journal does not know, because the journal was lost or is an old copy; the cell decides about them as about all others",
      "the agent has taken over a guest that its journal does not know",
    );
  }

  /** Warns of all these guests in one line, since there may be hundreds. The level debug has a line for each. */
  #warnOf(guests: readonly GuestName[], text: string, textOfEach: string): void {
    if (guests.length === 0) return;
    for (const guest of guests) this.#logger.debug(nameOf(guest), textOfEach);
    const servers = guests.slice(0, GUESTS_SHOWN).map(({ serverUuid }) => serverUuid);
    this.#logger.warn({ count: guests.length, servers }, text);
  }

  /** The agent's journal may be lost. Logged for each try. */
  waitsForDriver(reason: string): void {
    this.#logger.error(
      { reason },
      "the driver cannot tell which guests exist, and the agent's journal is new, so the agent does not connect before it knows them: see why the driver does not answer",
    );
  }

  goesByJournal(reason: string): void {
    this.#logger.warn(
      { reason },
      "the driver cannot tell which guests exist, so the agent goes by its journal: if that is an old copy, start the agent again when the driver answers",
    );
  }

  adoptFailed(reason: string): void {
    this.#logger.error({ reason }, "the driver could not take over the guests of the agent's previous process");
  }

  buildStarted(guest: GuestName, traceparent: string): Span {
    this.#logger.debug({ ...guest }, "the build of a guest has started");
    return traceBuild(this.#options.tracing, guest, traceparent);
  }

  buildEnded(outcome: "prepared" | AttemptFailure, tookMs: number): void {
    this.#metrics.builds.inc({ outcome });
    this.#metrics.seconds.observe(tookMs / 1_000);
  }

  orderFailed(guest: GuestName, reason: string): void {
    this.#logger.error({ ...guest, reason }, "a conductor's order for a guest was not carried out");
  }

  driverStuck(guest: GuestName, what: string): void {
    this.#metrics.stuck.inc();
    const meaning = "the guest takes no other order until the driver ends; if it never does, restart the agent";
    this.#logger.error(
      { ...nameOf(guest), call: what },
      `the driver was told to give up a call but continues it: ${meaning}`,
    );
  }

  foundChanged(guest: GuestName, from: string, to: string): void {
    this.#logger.warn({ ...nameOf(guest), from, to }, "a guest is not in the state in which the agent left it");
  }

  lookFailed(reason: string): void {
    this.#logger.error({ reason }, "the driver could not report the states of its guests");
  }

  consoleFailed(guest: GuestName, reason: string): void {
    this.#logger.error({ ...guest, reason }, "the console of a guest could not be read or opened");
  }

  interfacesFailed(guest: GuestName, reason: string): void {
    const remedy = "it gets its server's interfaces when it is stopped and started";
    this.#logger.error({ ...nameOf(guest), reason }, `the interfaces of a guest could not be changed; ${remedy}`);
  }

  passwordFailed(guest: GuestName, reason: string): void {
    this.#logger.warn({ ...nameOf(guest), reason }, "the password of a guest could not be changed");
  }

  destroyed(guest: GuestName): void {
    this.#metrics.destroyed.inc();
    this.#logger.debug({ ...guest }, "a guest was removed");
  }

  leftover(guest: GuestName, reason: string): void {
    this.#metrics.leftovers.inc();
    this.#logger.error({ ...guest, reason }, "a guest could not be removed");
  }

  /** A host's tree differs from the agent's last report. */
  treeChanged(host: string): void {
    this.#metrics.treeChanges.inc();
    this.#logger.info({ host }, "the host's resources have changed, and the agent reports them to the cell");
  }

  hostsUnreadable(reason: string): void {
    this.#logger.error(
      { reason },
      "the resources of the hosts could not be read, so the cell keeps those that were reported before",
    );
  }

  hostDoubtful(warning: string): void {
    this.#logger.warn({ warning }, "a value of the host is unknown or doubtful, as the warning says");
  }

  hostsDiffer(added: readonly string[], removed: readonly string[]): void {
    const meaning = "restart the agent to change its hosts; until then it keeps the hosts that it started with";
    this.#logger.warn({ added, removed }, `the hosts file names other hosts than at the agent's start: ${meaning}`);
  }

  treeKept(host: string, kept: readonly string[]): void {
    this.#logger.warn(
      { host, kept },
      "the cell keeps resources that the host no longer offers, because servers still use them",
    );
  }

  treeRefused(host: string, reason: string): void {
    this.#logger.error(
      { host, reason },
      "the cell refuses the resources that the host reports, for the given reason; until a report is accepted, a host that is up keeps its former resources, and another one stays down",
    );
  }

  /** An agent must not act without its journal, so the process ends. */
  journalFailed(error: unknown): void {
    // The agent's end has interrupted this work. The next process finds it in the journal.
    if (error instanceof JournalError && error.code === "closed") return;
    this.#logger.fatal(
      { reason: messageOf(error) },
      "the agent's journal failed, and the agent ends, because it must not act without one: see that the journal's disk is writable and has room",
    );
    this.#options.fail(error);
  }
}

const nameOf = ({ host, serverUuid, attemptId }: GuestName): GuestName => ({ host, serverUuid, attemptId });

function createMetrics({ registry, guestCount }: AgentEventsOptions) {
  const registers = [registry];
  new Gauge({
    name: "berth_agent_guests",
    help: "guests that exist on this agent's hosts",
    registers,
    collect() {
      this.set(guestCount());
    },
  });
  return {
    conductors: new Gauge({ name: "berth_agent_conductors", help: "conductors that accepted this agent", registers }),
    builds: new Counter({
      name: "berth_agent_builds_total",
      help: "builds that ended, by outcome",
      labelNames: ["outcome"],
      registers,
    }),
    seconds: new QuickHistogram({
      name: "berth_agent_build_seconds",
      help: "from the order to the end of a build, waiting for a slot included",
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900],
      registers,
    }),
    destroyed: new Counter({ name: "berth_agent_destroyed_total", help: "guests that were removed", registers }),
    stuck: new Counter({
      name: "berth_agent_stuck_calls_total",
      help: "calls that the driver continued for more than 10 s after they were aborted",
      registers,
    }),
    takenOver: new Counter({
      name: "berth_agent_guests_taken_over_total",
      help: "guests that the agent has found on its hosts at its start, and that its journal did not know",
      registers,
    }),
    treeChanges: new Counter({
      name: "berth_agent_tree_changes_total",
      help: "changes of a host's resources while the agent ran",
      registers,
    }),
    leftovers: new Counter({
      name: "berth_agent_leftovers_total",
      help: "guests that the driver failed to remove",
      registers,
    }),
  };
}
