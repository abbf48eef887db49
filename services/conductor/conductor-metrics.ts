import { Counter, Gauge, type Registry } from "prom-client";
import { QuickHistogram } from "../../adapters/telemetry/quick-histogram.ts";

/** The metrics of a conductor. `taskCount` returns how many tasks it carries out now. */
export function createConductorMetrics(registry: Registry, taskCount: () => number) {
  const registers = [registry];
  const counter = <Label extends string = never>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter<Label>({ name: `berth_conductor_${name}`, help, labelNames, registers });
  new Gauge({
    name: "berth_conductor_tasks",
    help: "tasks that this conductor carries out now",
    registers,
    collect() {
      this.set(taskCount());
    },
  });
  return {
    agents: new Gauge({ name: "berth_conductor_agents", help: "agents that are connected", registers }),
    agentsRefused: counter("agents_refused_total", "hellos of agents that were refused"),
    reportsDropped: counter("reports_dropped_total", "reports about hosts of other agents", ["what"]),
    builds: counter("builds_total", "builds that ended here, by outcome", ["outcome"]),
    operations: counter("operations_total", "operations that ended here, by kind and outcome", ["kind", "outcome"]),
    waits: counter("operation_waits_total", "operations that began to wait for a host or for room, by kind", ["kind"]),
    attempts: counter("attempts_total", "attempts that did not succeed, by result", ["result"]),
    deletes: counter("deletes_total", "servers deleted"),
    resumed: counter("resumed_total", "builds that another process had begun and this one continued"),
    swept: counter("swept_total", "tasks taken over by the sweep"),
    toldUnusable: counter(
      "told_unusable_total",
      "messages whose builds could not begin before they were taken, by reason: old, or future, as the clock of NATS is ahead of this one",
      ["reason"],
    ),
    handedOver: counter("handed_over_total", "tasks released because other conductors reach their host"),
    stoppedWithGuest: counter(
      "self_stopped_servers_total",
      "servers that are stopped because their guest stopped without an order, by cause",
      ["cause"],
    ),
    settled: counter("guests_settled_total", "guests started or destroyed because the database says so", ["fate"]),
    missing: counter("guests_missing_total", "servers found missing on their home host"),
    orphans: new Gauge({
      name: "berth_conductor_orphaned_consumers",
      help: "consumers with allocations that are neither a server nor a move of the cell",
      registers,
    }),
    quarantined: counter(
      "guests_quarantined_total",
      "guests put into quarantine: the cell's database has forgotten them",
    ),
    unknownWaiting: new Gauge({
      name: "berth_conductor_unknown_guests_waiting",
      help: "guests of unknown servers that wait to be destroyed, because the number destroyed in a minute is limited",
      registers,
    }),
    heldUp: new Gauge({
      name: "berth_conductor_hosts_held_up",
      help: "silent hosts that stay up, because too large a share of the cell would otherwise be down at once",
      registers,
    }),
    leftovers: counter("leftovers_total", "guests that may be left on a host"),
    eventsLost: counter("events_lost_total", "events that could not be sent to the API tier"),
    databaseFailures: counter("database_failures_total", "calls of the cell's database that failed", ["what"]),
    refusedSteps: counter("refused_steps_total", "steps of builds that the cell's database refused for good", ["what"]),
    seconds: new QuickHistogram({
      name: "berth_conductor_build_seconds",
      help: "from taking a build to its end",
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900],
      registers,
    }),
  };
}
