import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Tracing } from "../../adapters/telemetry/tracing.ts";
import type { AttemptFailure } from "../../core/tasks/build-task.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { GuestName } from "./journal.ts";
import { messageOf } from "./message-of.ts";
import type { Span } from "./ports.ts";
import { traceBuild } from "./trace-build.ts";

export type AgentEvents = ReturnType<typeof createAgentEvents>;

/** One function for each thing that is worth telling an operator: a log line, a counter, or both. */
export function createAgentEvents(deps: {
  readonly logger: Logger;
  readonly registry: Registry;
  readonly tracing: Tracing;
  /** The agent cannot go on. */
  readonly fail: (error: unknown) => void;
  readonly guestCount: () => number;
}) {
  const { logger, registry } = deps;
  const registers = [registry];
  const links = new Gauge({
    name: "berth_agent_conductors_welcomed",
    help: "conductors that welcomed this agent",
    registers,
  });
  const builds = new Counter({
    name: "berth_agent_builds_total",
    help: "builds that ended, by outcome",
    labelNames: ["outcome"],
    registers,
  });
  const seconds = new Histogram({
    name: "berth_agent_build_seconds",
    help: "from the order to the end of a build, waiting for a slot included",
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900],
    registers,
  });
  const destroys = new Counter({ name: "berth_agent_destroyed_total", help: "guests that were removed", registers });
  const leftovers = new Counter({
    name: "berth_agent_leftovers_total",
    help: "guests that the driver failed to remove",
    registers,
  });
  new Gauge({
    name: "berth_agent_guests",
    help: "guests that exist on this agent's hosts",
    registers,
    collect() {
      this.set(deps.guestCount());
    },
  });
  return {
    welcomed(address: string, conductorId: string): void {
      links.inc();
      logger.info({ address, conductorId }, "welcomed by a conductor");
    },
    lost(address: string, reason: string): void {
      links.dec();
      logger.warn({ address, reason }, "lost a conductor");
    },
    interrupted(guest: GuestName): void {
      logger.warn({ ...guest }, "removed a guest whose build was interrupted by the agent's end");
    },
    buildStarted(guest: GuestName, traceparent: string): Span {
      logger.debug({ ...guest }, "build started");
      return traceBuild(deps.tracing, guest, traceparent);
    },
    buildEnded(outcome: "prepared" | AttemptFailure, tookMs: number): void {
      builds.inc({ outcome });
      seconds.observe(tookMs / 1_000);
    },
    startFailed(guest: GuestName, reason: string): void {
      logger.error({ ...guest, reason }, "a guest does not start");
    },
    destroyed(guest: GuestName): void {
      destroys.inc();
      logger.debug({ ...guest }, "guest removed");
    },
    leftover(guest: GuestName, reason: string): void {
      leftovers.inc();
      logger.error({ ...guest, reason }, "a guest could not be removed");
    },
    treeRefused(host: string, reason: string): void {
      logger.error({ host, reason }, "the cell refuses what the host offers; the host stays down");
    },
    /** The service closes: without its journal an agent must not act. */
    journalFailed(error: unknown): void {
      logger.fatal({ reason: messageOf(error) }, "the journal failed");
      deps.fail(error);
    },
  };
}
